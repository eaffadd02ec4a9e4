package main

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// pkg is what go list tells of a package.
type pkg struct {
	ImportPath, Dir string
	GoFiles         []string
	Imports         []string
	TestImports     []string
	XTestImports    []string
}

// list runs go list in the module's root.
func list(t *testing.T, arg ...string) []pkg {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-e", "-json=ImportPath,Dir,GoFiles,Imports,TestImports,XTestImports"}, arg...)...)
	cmd.Dir = "../.."
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var all []pkg
	for d := json.NewDecoder(out); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("go list: %v\n%s", err, &stderr)
	}
	return all
}

// below tells whether path is one of the roots or stands below one.
func below(path string, roots ...string) bool {
	return slices.ContainsFunc(roots, func(r string) bool { return path == r || strings.HasPrefix(path, r+"/") })
}

var (
	domains = []string{"harvest/gather", "harvest/broker", "harvest/index", "harvest/cache", "harvest/replica"}
	doors   = []string{"harvest/fs/ninep", "harvest/fs/fuse"}
	leaves  = []string{
		"harvest/gather/soif", "harvest/gather/essence/jail", "harvest/gather/essence/unpack", "harvest/gather/fetch", "harvest/gather/dup", "harvest/gather/crawl", "harvest/gather/warc", "harvest/index/match", "harvest/index/query",
		"harvest/index/segfile", "harvest/broker/provider", "harvest/broker/page",
		"harvest/cache/icp", "harvest/cache/dns", "harvest/replica/topology",
	}
	// homes are the packages that may import a dependency, those below them
	// included. One that is not here is to be given its place first.
	homes = map[string][]string{
		"github.com/andybalholm/brotli":                 {"harvest/gather/fetch", "harvest/gather/essence"},
		"github.com/blevesearch/snowballstem":           {"harvest/index"},
		"github.com/clipperhouse/uax29":                 {"harvest/index"},
		"github.com/richardlehane/mscfb":                {"harvest/gather/essence"},
		"github.com/richardlehane/msoleps":              {"harvest/gather/essence"},
		"github.com/bep/imagemeta":                      {"harvest/gather/essence"},
		"github.com/dhowden/tag":                        {"harvest/gather/essence"},
		"github.com/fsnotify/fsnotify":                  {"harvest/gather"},
		"github.com/gabriel-vasile/mimetype":            {"harvest/gather/essence"},
		"github.com/hanwen/go-fuse":                     {"harvest/fs/fuse"},
		"github.com/dunglas/httpsfv":                    {"harvest/cache/policy"},
		"github.com/gogs/chardet":                       {"harvest/gather/essence"},
		"github.com/abadojack/whatlanggo":               {"harvest/gather/essence"},
		"github.com/jimsmart/grobotstxt":                {"harvest/gather/crawl"},
		"github.com/jlaffaye/ftp":                       {"harvest/gather/fetch"},
		"github.com/klauspost/compress":                 append([]string{"harvest/fs/ninep"}, domains...),
		"github.com/knusbaum/go9p":                      {"harvest/fs/ninep"},
		"github.com/landlock-lsm/go-landlock":           {"harvest/gather/essence/jail"},
		"go.starlark.net":                               {"harvest/gather/essence"},
		"github.com/mmcdole/gofeed":                     {"harvest/gather/crawl", "harvest/gather/essence"},
		"github.com/miekg/dns":                          {"harvest/cache/dns"},
		"github.com/nlnwa/whatwg-url":                   {"harvest/gather/crawl", "harvest/gather/essence", "harvest/gather/fetch"},
		"github.com/rogpeppe/go-internal":               {"harvest/fs/fstest"},
		"github.com/spf13/pflag":                        {"harvest/cmd/harvest"},
		"go.etcd.io/bbolt":                              {"harvest/gather", "harvest/broker", "harvest/index", "harvest/cache", "harvest/replica"},
		"kernel.org/pub/linux/libs/security/libcap/psx": {"harvest/gather/essence/jail"},
		"golang.org/x/net":                              append([]string{"harvest/fs"}, domains...),
		"golang.org/x/sync":                             {"harvest"},
		"golang.org/x/sys":                              {"harvest"},
		"golang.org/x/term":                             {"harvest/cmd/harvest"},
		"golang.org/x/text":                             domains,
		"github.com/jhillyerd/enmime":                   {"harvest/gather/essence"},
		"github.com/nwaples/rardecode":                  {"harvest/gather/essence"},
		"github.com/pierrec/lz4":                        {"harvest/gather/essence"},
		"github.com/therootcompany/xz":                  {"harvest/gather/essence"},
	}
)

// wrong tells what rule an import breaks; standard tells what is of Go's own
// library. It is about the files that are built, not about tests.
func wrong(from, to string, standard bool) string {
	ours := below(to, "harvest")
	switch {
	case standard:
		return ""
	case below(to, "harvest/cmd"):
		return "nothing imports a command"
	case below(to, "harvest/fs/fstest"):
		return "fs/fstest is for tests"
	case from == "harvest/fs" || from == "harvest/fs/ndb" && to != "harvest/fs":
		return "fs imports the standard library only, and fs/ndb that and fs"
	case below(from, "harvest/fs") && ours && !below(to, "harvest/fs"):
		return "fs imports no domain"
	case below(from, domains...) && below(to, doors...):
		return "a domain knows neither door"
	case below(from, "harvest/gather") && below(to, "harvest/broker"):
		return "gather never imports broker"
	case below(from, "harvest/gather", "harvest/index", "harvest/cache") && below(to, "harvest/broker", "harvest/replica"),
		below(from, "harvest/index", "harvest/cache") && below(to, "harvest/gather"),
		below(from, "harvest/gather", "harvest/cache") && below(to, "harvest/index"),
		below(from, "harvest/gather") && below(to, "harvest/cache"),
		below(from, "harvest/replica") && below(to, "harvest/broker", "harvest/index", "harvest/cache"),
		below(from, "harvest/broker") && below(to, "harvest/replica", "harvest/cache"),
		strings.HasPrefix(from, to+"/") && below(to, domains...) && to != "harvest/index":
		return "imports point down"
	case slices.Contains(leaves, from) && ours && to != "harvest/fs/ndb" && to != "harvest/fs" && !(from == "harvest/gather/crawl" && to == "harvest/gather/dup"):
		return "a leaf imports nothing of ours"
	case ours:
		return ""
	}
	for dep, home := range homes {
		if below(to, dep) {
			if below(from, home...) {
				return ""
			}
			return dep + " has its home in " + strings.Join(home, ", ")
		}
	}
	return "a dependency without a home; say in imports_test.go who may import it"
}

// TestImports holds the module to the directions and homes of imports.
func TestImports(t *testing.T) {
	std := make(map[string]bool)
	for _, p := range list(t, "std") {
		std[p.ImportPath] = true
	}
	all := list(t, "./...")
	if len(all) < 5 {
		t.Fatalf("got %d packages, want the module's", len(all))
	}
	for _, p := range all {
		for _, to := range p.Imports {
			if why := wrong(p.ImportPath, to, std[to] || to == "C"); why != "" {
				t.Errorf("%s imports %s: %s", p.ImportPath, to, why)
			}
		}
		for _, to := range slices.Concat(p.TestImports, p.XTestImports) {
			if below(p.ImportPath, "harvest/gather") && below(to, "harvest/broker") {
				t.Errorf("%s imports %s in a test: gather never imports broker", p.ImportPath, to)
			}
		}
	}
}

// TestFiles holds domain packages to reaching fs from files.go and files_*.go; what is
// in fs/ndb is free to all.
func TestFiles(t *testing.T) {
	n := 0
	for _, p := range list(t, "./...") {
		if !below(p.ImportPath, domains...) {
			continue
		}
		for _, name := range p.GoFiles {
			n++
			b, err := os.ReadFile(p.Dir + "/" + name)
			if err != nil {
				t.Fatal(err)
			}
			if imports(t, name, b, "harvest/fs") && name != "files.go" && !strings.HasPrefix(name, "files_") {
				t.Errorf("%s/%s imports harvest/fs: only files.go and files_*.go do", p.ImportPath, name)
			}
		}
	}
	if n == 0 {
		t.Fatal("got no files of a domain, want some")
	}
}

// imports tells whether a file imports a path.
func imports(t *testing.T, name string, src []byte, path string) bool {
	f, err := parser.ParseFile(token.NewFileSet(), name, src, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(f.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == strconv.Quote(path) })
}

// TestWrong holds the rules themselves to what they are to find.
func TestWrong(t *testing.T) {
	bad := [][2]string{
		{"harvest/fs", "harvest/gather/soif"},
		{"harvest/fs", "golang.org/x/sys/unix"},
		{"harvest/fs/ndb", "harvest/fs/ninep"},
		{"harvest/fs/ninep", "harvest/gather/store"},
		{"harvest/gather", "harvest/fs/ninep"},
		{"harvest/broker", "harvest/fs/fuse"},
		{"harvest/gather", "harvest/broker"},
		{"harvest/gather/crawl", "harvest/broker/view"},
		{"harvest/index", "harvest/gather/soif"},
		{"harvest/gather/store", "harvest/gather"},
		{"harvest/index/query", "harvest/index"},
		{"harvest/gather/crawl", "harvest/gather/soif"},
		{"harvest/gather/dup", "harvest/gather/crawl"},
		{"harvest/gather", "harvest/cmd/harvest"},
		{"harvest/gather", "harvest/fs/fstest"},
		{"harvest/gather", "github.com/spf13/pflag"},
		{"harvest/fs/ninep", "github.com/hanwen/go-fuse/v2/fuse"},
		{"harvest/fs/fuse", "github.com/knusbaum/go9p/proto"},
		{"harvest/fs/ninep", "go.etcd.io/bbolt"},
		{"harvest/gather", "github.com/google/uuid"},
		{"harvest/gather", "github.com/spf13/pflagger"},
	}
	for _, b := range bad {
		if wrong(b[0], b[1], false) == "" {
			t.Errorf("%s imports %s: got no complaint", b[0], b[1])
		}
	}
	good := [][2]string{
		{"harvest/cmd/harvest", "harvest/fs/ninep"},
		{"harvest/cmd/harvest", "github.com/spf13/pflag"},
		{"harvest/gather", "harvest/fs"},
		{"harvest/gather", "harvest/gather/store"},
		{"harvest/gather/crawl", "harvest/fs/ndb"},
		{"harvest/gather/crawl", "harvest/gather/dup"},
		{"harvest/broker", "harvest/gather/store"},
		{"harvest/broker", "harvest/index/query"},
		{"harvest/index/block", "harvest/index"},
		{"harvest/replica", "harvest/gather/store"},
		{"harvest/fs/ninep", "github.com/knusbaum/go9p/proto"},
		{"harvest/fs/ndb", "harvest/fs"},
		{"harvest/gather/store", "go.etcd.io/bbolt"},
	}
	for _, g := range good {
		if why := wrong(g[0], g[1], false); why != "" {
			t.Errorf("%s imports %s: got %q, want no complaint", g[0], g[1], why)
		}
	}
}

// top is all that may stand at the top of the repository.
var top = []string{
	".ci", ".gitignore", "LICENSE", "README.md", "broker", "cache", "cmd", "docs", "fs", "gather", "go.mod", "go.sum",
	"index", "mkfile", "replica",
}

// TestTop holds the repository to its fixed top level.
func TestTop(t *testing.T) {
	cmd := exec.Command("git", "ls-files", "-z")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Skipf("the top level is not checked: git ls-files: %v", err)
	}
	seen := make(map[string]bool)
	for name := range strings.SplitSeq(string(out), "\x00") {
		first, _, _ := strings.Cut(name, "/")
		if first != "" && !seen[first] && !slices.Contains(top, first) {
			t.Errorf("%s: is not one of %s", first, strings.Join(top, " "))
		}
		seen[first] = true
	}
}
