package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"strings"
)

// edit is one change of a file.
type edit struct {
	file     string // slashes, from the project's folder
	function string
	from, to int    // bytes that are replaced
	by       string // what by
	was, is  string // the changed expression or statement
	nth      int    // of the equal ones in the function, from 1
}

// String names an edit in a way that survives changes elsewhere in the file.
func (e edit) String() string {
	s := fmt.Sprintf("%s %s: %s -> %s", e.file, e.function, e.was, e.is)
	if e.nth > 1 {
		s += fmt.Sprintf(" (%d)", e.nth)
	}
	return s
}

// apply returns the text with the change made.
func (e edit) apply(text string) string { return text[:e.from] + e.by + text[e.to:] }

// others are what a comparison or operator is changed to.
var others = map[token.Token][]token.Token{
	token.LSS: {token.LEQ, token.GEQ}, token.LEQ: {token.LSS, token.GTR}, token.GTR: {token.GEQ, token.LEQ},
	token.GEQ: {token.GTR, token.LSS},
	token.EQL: {token.NEQ}, token.NEQ: {token.EQL}, token.LAND: {token.LOR}, token.LOR: {token.LAND},
	token.ADD: {token.SUB}, token.SUB: {token.ADD},
}

// messages are calls whose arguments are texts for people.
var messages = regexp.MustCompile(`^(fmt\..*|errors\.New|.*\.say|panic|.*\.log)$`)

// editsOf lists the changes of a file.
func editsOf(file, text string) ([]edit, error) {
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, text, 0)
	if err != nil {
		return nil, err
	}
	f := &finder{file: file, text: text, at: func(p token.Pos) int { return set.Position(p).Offset }}
	for _, d := range tree.Decls {
		function, ok := d.(*ast.FuncDecl)
		if !ok || function.Body == nil || function.Name.Name == "String" || function.Name.Name == "Error" {
			continue
		}
		f.function = function.Name.Name
		f.seen = make(map[string]int)
		ast.Inspect(function.Body, f.visit)
	}
	return f.edits, nil
}

type finder struct {
	file, text, function string
	at                   func(token.Pos) int
	seen                 map[string]int
	edits                []edit
}

func (f *finder) source(n ast.Node) string { return f.text[f.at(n.Pos()):f.at(n.End())] }

// add notes a change of the bytes [from, to) within a node.
func (f *finder) add(n ast.Node, from, to int, by string) {
	start, end := f.at(n.Pos()), f.at(n.End())
	e := edit{file: f.file, function: f.function, from: from, to: to, by: by,
		was: short(f.text[start:end]), is: short(f.text[start:from] + by + f.text[to:end])}
	if by == " " {
		e.is = "left out"
	}
	name := e.String()
	f.seen[name]++
	e.nth = f.seen[name]
	f.edits = append(f.edits, e)
}

// short is a text in one line.
func short(text string) string { return strings.Join(strings.Fields(text), " ") }

func (f *finder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		for _, op := range others[n.Op] {
			at := f.at(n.OpPos)
			f.add(n, at, at+len(n.Op.String()), op.String())
		}
	case *ast.UnaryExpr:
		if n.Op == token.NOT {
			f.add(n, f.at(n.Pos()), f.at(n.X.Pos()), "")
		}
	case *ast.BasicLit:
		if v, err := strconv.Atoi(n.Value); err == nil && n.Kind == token.INT {
			f.add(n, f.at(n.Pos()), f.at(n.End()), strconv.Itoa(v+1))
		}
	case *ast.Ident:
		switch n.Name {
		case "true":
			f.add(n, f.at(n.Pos()), f.at(n.End()), "false")
		case "false":
			f.add(n, f.at(n.Pos()), f.at(n.End()), "true")
		}
	case *ast.IncDecStmt:
		f.leaveOut(n)
	case *ast.ExprStmt:
		f.leaveOut(n)
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			f.leaveOut(n)
		}
	case *ast.BranchStmt:
		f.leaveOut(n)
	case *ast.SwitchStmt:
		if n.Tag == nil {
			for _, c := range n.Body.List {
				for _, condition := range c.(*ast.CaseClause).List {
					f.add(condition, f.at(condition.Pos()), f.at(condition.End()), "false")
				}
			}
		}
	case *ast.CallExpr:
		return !messages.MatchString(f.source(n.Fun))
	}
	return true
}

// leaveOut adds the change in which a statement is not there.
func (f *finder) leaveOut(n ast.Node) { f.add(n, f.at(n.Pos()), f.at(n.End()), " ") }
