// Walk follows a parameter of a function through the calls that pass it on, and prints how many files it enters and
// how often it returns to a file that it has left:
//
//	go run ./internal/walk [-C DIR] [-v] controller Machine.applyJobStatus s
//
// The rule. "I" am the parameter, and every variable that is assigned an expression with me, also one with calls. A
// call with me in an argument leads into that function, where I am that parameter; so does a call of a method of mine.
// Calls are followed in the order in which they are written, branches one after the other. A function is followed once
// for each set of its parameters that I am; another call of it counts as entered. A function that is one return
// statement is a name for an expression, and is not entered; functions of other modules, interfaces and closures cannot
// be. A stay is a run of entered functions in one file. Files are those of all stays, returns the stays in a file where
// I was before.
//
// On commit 113f0747, `controller Machine.jobStatus s` enters 14 files and returns 34 times.
package main

import (
	"flag"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"strings"
)

const module = "tensile/"

// walker is a walk that is going on.
type walker struct {
	root     string
	fset     *token.FileSet
	packages map[string]*types.Package
	infos    map[*types.Package]*types.Info
	bodies   map[types.Object]*ast.FuncDecl
	me       map[types.Object]bool
	passed   map[types.Object]bool
	stays    []string
}

func main() {
	root := flag.String("C", ".", "the module's `directory`")
	verbose := flag.Bool("v", false, "print the stays")
	flag.Parse()
	if flag.NArg() != 3 {
		fmt.Fprintln(os.Stderr, "usage: go run ./internal/walk [-C DIR] [-v] PACKAGE FUNCTION PARAMETER")
		os.Exit(2)
	}
	stays, files := walk(*root, flag.Arg(0), flag.Arg(1), flag.Arg(2))
	if *verbose {
		for i, s := range stays {
			fmt.Printf("%3d. %s\n", i+1, s)
		}
	}
	fmt.Printf("%d files, %d returns\n", files, len(stays)-files)
}

// walk follows a parameter of a function of a package of the module in a directory. It returns the stays, and in how
// many files they are.
func walk(root, pkg, function, parameter string) (stays []string, files int) {
	w := &walker{root: root, fset: token.NewFileSet(), packages: map[string]*types.Package{},
		infos: map[*types.Package]*types.Info{}, bodies: map[types.Object]*ast.FuncDecl{},
		me: map[types.Object]bool{}, passed: map[types.Object]bool{}}
	w.load(module + pkg)
	for f, decl := range w.bodies {
		if f.Pkg().Path() != module+pkg || nameOf(decl) != function {
			continue
		}
		for _, field := range decl.Type.Params.List {
			for _, name := range field.Names {
				if name.Name == parameter {
					w.enter(f, w.info(f).Defs[name])
				}
			}
		}
	}
	seen := make(map[string]bool)
	for _, s := range w.stays {
		file, _, _ := strings.Cut(s, " ")
		seen[file] = true
	}
	return w.stays, len(seen)
}

// nameOf is the name of a function, with that of the type whose method it is.
func nameOf(decl *ast.FuncDecl) string {
	if decl.Recv == nil {
		return decl.Name.Name
	}
	t := decl.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if id, ok := t.(*ast.Ident); ok {
		return id.Name + "." + decl.Name.Name
	}
	return decl.Name.Name
}

// Import returns a package of the module, or an empty one for any other.
func (w *walker) Import(path string) (*types.Package, error) {
	if strings.HasPrefix(path, module) {
		return w.load(path), nil
	}
	if w.packages[path] == nil {
		p := types.NewPackage(path, filepath.Base(path))
		p.MarkComplete()
		w.packages[path] = p
	}
	return w.packages[path], nil
}

// load parses and checks a package of the module. What is missing of other packages is no error.
func (w *walker) load(path string) *types.Package {
	if p := w.packages[path]; p != nil {
		return p
	}
	dir := filepath.Join(w.root, strings.TrimPrefix(path, module))
	var files []*ast.File
	names, _ := filepath.Glob(filepath.Join(dir, "*.go"))
	for _, name := range names {
		match, _ := build.Default.MatchFile(dir, filepath.Base(name))
		if strings.HasSuffix(name, "_test.go") || !match {
			continue
		}
		f, err := parser.ParseFile(w.fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		files = append(files, f)
	}
	info := &types.Info{Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{},
		Selections: map[*ast.SelectorExpr]*types.Selection{}}
	config := types.Config{Importer: w, Error: func(error) {}, FakeImportC: true}
	p, _ := config.Check(path, w.fset, files, info)
	w.packages[path], w.infos[p] = p, info
	for _, f := range files {
		for _, d := range f.Decls {
			if decl, ok := d.(*ast.FuncDecl); ok && decl.Body != nil {
				w.bodies[info.Defs[decl.Name]] = decl
			}
		}
	}
	return p
}

func (w *walker) info(f types.Object) *types.Info { return w.infos[f.Pkg()] }

func (w *walker) file(decl *ast.FuncDecl) string {
	file, err := filepath.Rel(w.root, w.fset.Position(decl.Pos()).Filename)
	if err != nil {
		return ""
	}
	return file
}

// enter is my way into a function, as something that is me there.
func (w *walker) enter(f types.Object, as ...types.Object) {
	decl := w.bodies[f]
	if decl == nil || isFormula(decl) {
		return
	}
	if file := w.file(decl); len(w.stays) == 0 || !strings.HasPrefix(w.stays[len(w.stays)-1], file+" ") {
		w.stays = append(w.stays, fmt.Sprintf("%s %s as %s", file, nameOf(decl), as[0].Name()))
	}
	isNew := !w.passed[f]
	for _, o := range as {
		isNew = isNew || !w.me[o]
		w.me[o] = true
	}
	if !isNew {
		return
	}
	w.passed[f] = true
	w.follow(w.info(f), decl.Body)
}

// follow follows me through statements, in the order in which they are written.
func (w *walker) follow(info *types.Info, body ast.Node) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, e := range append(n.Rhs, n.Lhs...) {
				w.follow(info, e)
			}
			for i, l := range n.Lhs {
				if r := n.Rhs[min(i, len(n.Rhs)-1)]; w.isMe(info, r) {
					w.become(info, l)
				}
			}
			return false
		case *ast.RangeStmt:
			w.follow(info, n.X)
			if n.Value != nil && w.isMe(info, n.X) {
				w.become(info, n.Value)
			}
			w.follow(info, n.Body)
			return false
		case *ast.CallExpr:
			for _, a := range n.Args {
				w.follow(info, a)
			}
			w.call(info, n)
			return false
		}
		return true
	})
}

// become has what is assigned be me.
func (w *walker) become(info *types.Info, l ast.Expr) {
	if id, ok := l.(*ast.Ident); ok {
		if o := info.ObjectOf(id); o != nil {
			w.me[o] = true
		}
	}
}

// isMe reports whether an expression names me.
func (w *walker) isMe(info *types.Info, e ast.Expr) (found bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.Ident:
			found = found || w.me[info.Uses[n]]
		}
		return !found
	})
	return found
}

// call follows a call.
func (w *walker) call(info *types.Info, c *ast.CallExpr) {
	if sel, ok := ast.Unparen(c.Fun).(*ast.SelectorExpr); ok {
		w.follow(info, sel.X)
	}
	f := callee(info, c)
	decl := w.bodies[f]
	if decl == nil {
		return
	}
	at, as := 0, []types.Object(nil)
	for _, field := range decl.Type.Params.List {
		for _, name := range field.Names {
			if at < len(c.Args) && w.isMe(info, c.Args[at]) {
				as = append(as, w.info(f).Defs[name])
			}
			at++
		}
	}
	if len(as) > 0 {
		w.enter(f, as...)
		return
	}
	if sel, ok := ast.Unparen(c.Fun).(*ast.SelectorExpr); ok && decl.Recv != nil {
		if w.isMe(info, sel.X) && len(decl.Recv.List[0].Names) > 0 {
			w.enter(f, w.info(f).Defs[decl.Recv.List[0].Names[0]])
			return
		}
	}
}

// callee is the function that is called. nil: it is not known.
func callee(info *types.Info, c *ast.CallExpr) types.Object {
	switch fun := ast.Unparen(c.Fun).(type) {
	case *ast.Ident:
		return info.Uses[fun]
	case *ast.SelectorExpr:
		return info.Uses[fun.Sel]
	}
	return nil
}

// isFormula reports whether a function is a name for an expression.
func isFormula(decl *ast.FuncDecl) bool {
	if len(decl.Body.List) != 1 {
		return false
	}
	_, isReturn := decl.Body.List[0].(*ast.ReturnStmt)
	return isReturn
}
