package data

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"tensile/data/rooted"
)

// Words that folders with parts of a data set are called by, the likelier first.
var (
	trainWords = []string{"train", "training"}
	testWords  = []string{"val", "valid", "validation", "test", "testing", "dev", "eval"}
)

// partWord is the word by which a folder is called, such as test of "Test_set" and train of "train2017", and what
// stands beside it, such as seg of "seg_train". Of a name of several words it is "", unless just one is of a part.
func partWord(name string) (word, beside string) {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return !unicode.IsLetter(r) })
	words = slices.DeleteFunc(words, func(w string) bool { return w == "set" || w == "data" || w == "images" })
	if len(words) == 1 {
		return words[0], ""
	}
	for _, w := range words {
		if isPart := slices.Contains(trainWords, w) || slices.Contains(testWords, w); !isPart {
			beside += w + " "
		} else if word != "" {
			return "", ""
		} else {
			word = w
		}
	}
	return word, beside
}

// trainingFolder returns the folder in which those of the classes are: train in dir, or one that is called alike if all
// folders there are parts of a data set, else dir.
func trainingFolder(in *rooted.Files, dir string) (string, error) {
	train := filepath.Join(dir, "train")
	_, files, err := classFolders(in, train)
	if err != nil && !errors.Is(err, fs.ErrNotExist) || len(files) > 0 {
		return train, err
	}
	folders, _, err := classFolders(in, dir)
	if err != nil || len(folders) == 0 {
		return dir, err
	}
	var trains []string
	_, all := partWord(folders[0])
	for _, name := range folders {
		word, beside := partWord(name)
		switch learns := slices.Contains(trainWords, word); {
		case !learns && !slices.Contains(testWords, word), beside != all:
			return dir, nil // a class
		case learns:
			trains = append(trains, filepath.Join(dir, name))
		}
	}
	if all != "" && len(trains) == 0 {
		return dir, nil // classes such as two tests of one kind
	}
	if len(trains) != 1 {
		return "", fmt.Errorf("%s has %s, which are parts of a data set, and %d of them to learn from: call one train",
			dir, shortList(folders), len(trains))
	}
	if _, files, err = classFolders(in, trains[0]); err == nil && len(files) == 0 {
		err = fmt.Errorf("%s has no folder of images for each class: put the images of each class into one there",
			trains[0])
	}
	return trains[0], err
}

// testFolders are the folders beside that of the training set that may have the test set, the likelier first.
func testFolders(in *rooted.Files, dir, train string) ([]string, error) {
	_, all := partWord(filepath.Base(train))
	entries, err := in.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var folders []string
	for _, word := range testWords {
		for _, e := range entries {
			if w, beside := partWord(e.Name()); w == word && beside == all {
				folders = append(folders, filepath.Join(dir, e.Name()))
			}
		}
	}
	return folders, nil
}

// checkClasses returns an error if all classes have the same folders, several of them: then these are the classes, or
// nobody knows.
func checkClasses(in *rooted.Files, root string, classes []string) error {
	var first []string
	for i, class := range classes {
		entries, err := in.ReadDir(filepath.Join(root, class))
		if err != nil {
			return err
		}
		var within []string
		for _, e := range entries {
			if isImage(e.Name()) {
				return nil
			}
			if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
				within = append(within, e.Name())
			}
		}
		if i == 0 {
			first = within
		}
		if len(within) < 2 || !slices.Equal(first, within) {
			return nil
		}
	}
	return fmt.Errorf("%s has %s, and each of these %s: name the one whose folders are the classes, such as %s, or "+
		"put the images of each class right into its folder", root, shortList(classes), shortList(first),
		filepath.Join(root, classes[0]))
}

// shortList names the first of some names.
func shortList(names []string) string {
	const most = 8
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}
