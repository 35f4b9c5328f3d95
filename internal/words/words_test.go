package words

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	_ "tensile/internal/long" // the flag -long
)

const root = "../.."

// TestWords reads every text of the project.
func TestWords(t *testing.T) {
	stale := map[string]map[string]bool{} // allowed words that were not found yet, by folder
	for folder, list := range allowed {
		stale[folder] = map[string]bool{}
		for _, word := range list {
			stale[folder][word] = true
		}
	}
	isAllowed := func(folder, word string) bool {
		for ; folder != "."; folder = filepath.Dir(folder) {
			if slices.Contains(allowed[folder], word) {
				delete(stale[folder], word)
				return true
			}
		}
		return false
	}
	var patterns []*regexp.Regexp
	for _, phrase := range phrases {
		patterns = append(patterns, regexp.MustCompile(phrase))
	}
	packages := map[string][]string{} // of each exported type, by its name
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		if entry.IsDir() && path != root && (name[0] == '.' || path == filepath.Join(root, "bin") ||
			path == filepath.Join(root, "bench/results") ||
			path == filepath.Join(root, "internal/words")) {
			return filepath.SkipDir
		}
		if err != nil || entry.IsDir() || !slices.Contains(texts, filepath.Ext(name)) {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		file, _ := filepath.Rel(root, path)
		folder := filepath.Dir(file)
		for i, phrase := range phrases {
			if at := patterns[i].FindIndex(text); at != nil && !isAllowed(folder, phrase) {
				t.Errorf("%s:%d: %q: say it in other words", file, 1+strings.Count(string(text[:at[0]]), "\n"),
					text[at[0]:at[1]])
			}
		}
		if filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			var functions []*ast.Ident
			switch n := n.(type) {
			case *ast.FuncDecl:
				functions = append(functions, n.Name)
			case *ast.TypeSpec:
				if n.Name.IsExported() && !slices.Contains(packages[n.Name.Name], folder) {
					packages[n.Name.Name] = append(packages[n.Name.Name], folder)
				}
			case *ast.InterfaceType:
				for _, method := range n.Methods.List {
					functions = append(functions, method.Names...)
				}
			}
			for _, f := range functions {
				if slices.Contains(bare, strings.ToLower(f.Name)) && !isAllowed(folder, f.Name) {
					t.Errorf("%s: %s is no name for a function: call it by what it does or returns", file, f.Name)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	glossary, err := os.ReadFile(filepath.Join(root, "docs/glossary.md"))
	if err != nil {
		t.Fatal(err)
	}
	words := map[string]bool{}
	for _, row := range regexp.MustCompile(`(?m)^\| ([^|]*) \|`).FindAllStringSubmatch(string(glossary), -1) {
		for _, word := range strings.Split(row[1], ", ") {
			words[strings.ToLower(word)] = true
		}
	}
	for name, list := range packages {
		if len(list) > 3 && !words[strings.ToLower(name)] && !isAllowed("types", name) {
			t.Errorf("type %s is in %v: give it a row in docs/glossary.md, or other names", name, list)
		}
	}
	for folder, list := range stale {
		for word := range list {
			t.Errorf("%q is not in %s any more: take it out of the table", word, folder)
		}
	}
}
