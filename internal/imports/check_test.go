package imports

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strconv"
	"strings"
)

// check returns what is wrong with a file of a package, which is given by its path below the module's.
func check(pkg string, file *ast.File, isTest bool) []string {
	c := checker{pkg: pkg}
	names := make(map[string]string) // of imported packages in the file
	for _, spec := range file.Imports {
		to, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			panic(fmt.Sprintf("imports: %s: %v", spec.Path.Value, err))
		}
		name := path.Base(strings.TrimSuffix(to, "/v2"))
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = to
		ours, isOurs := strings.CutPrefix(to, module+"/")
		switch {
		case isForeign(to):
			c.foreign(to, isTest)
		case isTest:
		case to == "unsafe" && !slices.Contains(unsafes, pkg) && !slices.Contains(helpers, pkg):
			c.say("imports unsafe, by which anything can be made a program that may run")
		case isOurs:
			c.ours(ours)
		default:
			c.standard(to, name)
		}
	}
	if !isTest && !slices.Contains(helpers, pkg) {
		c.code(file, names)
		c.edges(file)
	}
	return c.problems
}

type checker struct {
	pkg      string
	problems []string
}

func (c *checker) say(format string, args ...any) {
	c.problems = append(c.problems, c.pkg+" "+fmt.Sprintf(format, args...))
}

// isForeign reports whether an import path is neither of the standard library nor ours.
func isForeign(to string) bool {
	first, _, _ := strings.Cut(to, "/")
	return to == "C" || strings.Contains(first, ".")
}

func (c *checker) foreign(to string, isTest bool) {
	door := "" // the longest prefix: gorgonia.org/cu has doors of its own
	for library := range foreign {
		if below(to, library) && len(library) > len(door) {
			door = library
		}
	}
	if door != "" {
		if doors := foreign[door]; !slices.Contains(doors, c.pkg) {
			c.say("imports %s, which enters through %s", to, strings.Join(doors, " and "))
		}
		return
	}
	for library, door := range foreignInTests {
		if below(to, library) {
			if !isTest && !slices.Contains(helpers, c.pkg) {
				c.say("imports %s, which is for tests", to)
			} else if door != "" && door != c.pkg {
				c.say("imports %s, which is for the tests of %s", to, door)
			}
			return
		}
	}
	c.say("imports %s, which is not in the table of foreign libraries", to)
}

// below reports whether an import path is a library's or one of its packages'.
func below(to, library string) bool { return to == library || strings.HasPrefix(to, library+"/") }

// ours checks an import of a package of the module by another.
func (c *checker) ours(to string) {
	switch {
	case slices.Contains(helpers, c.pkg):
		return
	case slices.Contains(helpers, to):
		c.say("imports %s, which is for tests", to)
		return
	case only[c.pkg] != nil && !slices.Contains(only[c.pkg], to):
		c.say("imports %s, and may import only %s", to, strings.Join(only[c.pkg], ", "))
		return
	case unknown(c.pkg, to):
		c.say("imports %s, which it must not know", to)
		return
	}
	from, target := placeOf(c.pkg), placeOf(to)
	switch {
	case target.row < 0:
		c.say("imports %s, which has no row in the table", to)
	case from.folder == target.folder && from.row == target.row:
		c.say("imports %s of its own row", to)
	case from.folder == target.folder && from.row < target.row:
		c.say("imports %s from a row above", to)
	case from.folder != target.folder && from.floor == target.floor:
		c.say("imports %s of its own floor", to)
	case from.folder != target.folder && from.floor < target.floor:
		c.say("imports %s from a floor above", to)
	}
}

// place is where a package stands: the floor of its folder, and its row there, counted from the ground; -1 is nowhere.
type place struct {
	folder     string
	floor, row int
}

func placeOf(pkg string) place {
	folder, _, _ := strings.Cut(pkg, "/")
	if below(pkg, "scheduler/rivals") {
		folder = "scheduler/rivals" // the one folder that is not on the floor of the folder that it is in
	}
	floor := slices.IndexFunc(house, func(folders []string) bool { return slices.Contains(folders, folder) })
	rows := rooms[folder]
	row := slices.IndexFunc(rows, func(row []string) bool { return slices.Contains(row, pkg) })
	if row < 0 {
		row = slices.IndexFunc(rows, func(row []string) bool { return lists(row, pkg) })
	}
	return place{folder, floor, row}
}

// lists reports whether entries of the table name a package, or all below one of its parents.
func lists(entries []string, pkg string) bool {
	return slices.ContainsFunc(entries, func(entry string) bool {
		parent, all := strings.CutSuffix(entry, "/...")
		return entry == pkg || all && strings.HasPrefix(pkg, parent+"/")
	})
}

// unknown reports whether a package must not know another.
func unknown(pkg, other string) bool {
	for entry, others := range strangers {
		if lists([]string{entry}, pkg) && slices.Contains(others, other) {
			return true
		}
	}
	return false
}

func (c *checker) standard(to, name string) {
	if lists(pure, c.pkg) && to != "math/rand/v2" && slices.ContainsFunc(outside, func(o string) bool {
		return below(to, o)
	}) {
		c.say("imports %s, but only computes", to)
	}
	if to == "os/exec" && !slices.Contains(starters, c.pkg) && !slices.Contains(helpers, c.pkg) {
		c.say("imports os/exec, but starts no programs")
	}
	if below(to, "testing") && !slices.Contains(helpers, c.pkg) {
		c.say("imports %s, which is for tests", to)
	}
	if to == "flag" && c.pkg != "cmd/tensile" && !slices.Contains(helpers, c.pkg) {
		c.say("imports flag, which only cmd/tensile reads")
	}
	if name == "." {
		c.say("imports %s without a name", to)
	}
}

// edges checks what leads round the imports: names of other packages that the linker binds, and programs of their own.
func (c *checker) edges(file *ast.File) {
	for _, group := range file.Comments {
		for _, comment := range group.List {
			if strings.HasPrefix(comment.Text, "//go:linkname") {
				c.say("has a go:linkname, which is an import that no table knows")
			}
		}
	}
	if file.Name.Name == "main" && !slices.Contains(programs, c.pkg) {
		c.say("is a program")
	}
}

// code checks the calls and statements of a file.
func (c *checker) code(file *ast.File, names map[string]string) {
	still := lists(timeless, c.pkg)
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			if still {
				c.say("starts a goroutine")
			}
		case *ast.SelectorExpr:
			of, ok := n.X.(*ast.Ident)
			if still && n.Sel.Name == "Go" && (!ok || names[of.Name] == "") {
				c.say("starts a goroutine")
			}
			if !ok {
				return true
			}
			switch from := names[of.Name]; {
			case still && from == "context" && (strings.HasPrefix(n.Sel.Name, "WithDeadline") ||
				strings.HasPrefix(n.Sel.Name, "WithTimeout")) && !lists(waits, c.pkg):
				c.say("uses context.%s", n.Sel.Name)
			case lists(pure, c.pkg) && from == "math/rand/v2" && !slices.Contains(seeded, n.Sel.Name):
				c.say("uses rand.%s, which has no seed", n.Sel.Name)
			case still && from == "time" && slices.Contains(clocks, n.Sel.Name):
				c.say("uses time.%s", n.Sel.Name)
			case (from == "os" || from == "syscall") && slices.Contains(asks, n.Sel.Name) && c.pkg != "cmd/tensile":
				c.say("uses %s.%s, which only cmd/tensile does", from, n.Sel.Name)
			}
		}
		return true
	})
}
