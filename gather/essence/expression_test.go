package essence

import (
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestExpressions compiles each expression that waits for its use: a bad one
// would else be met by a document only. It must be text alone.
func TestExpressions(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(gotoken.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok || len(call.Args) != 1 {
				return true
			}
			if f, ok := call.Fun.(*ast.Ident); ok && f.Name == "expression" {
				n++
				if _, err := regexp.Compile(literal(t, call.Args[0])); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			return true
		})
	}
	if n < 50 {
		t.Errorf("got %d expressions, want 50 or more", n)
	}
}

// literal is the text of a string literal, or of several put together.
func literal(t *testing.T, e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		s, err := strconv.Unquote(e.Value)
		if err != nil {
			t.Fatal(err)
		}
		return s
	case *ast.BinaryExpr:
		return literal(t, e.X) + literal(t, e.Y)
	}
	t.Fatalf("got an expression of %T, want literals", e)
	return ""
}
