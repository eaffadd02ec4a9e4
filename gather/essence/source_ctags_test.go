package essence

import (
	"bufio"
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

var (
	trees    = flag.String("trees", "", "TYPE=DIR,… of sources to compare with ctags, besides those of Go and Python")
	doubtful = flag.Bool("doubtful", false, "list the names too that -disagree leaves out with a reason")
	disagree = flag.Int("disagree", 0, "names of each language to list that only one of us finds")
	treeSize = flag.Int64("treesize", 1<<20, "bytes of each language to compare")
)

// ctagsName is a language as ctags calls it, and the letters of the kinds that
// are no names a source defines: labels of here-documents, files.
var ctagsName = map[string]struct{ name, without string }{
	"C": {"C", "h"}, "CHeader": {"C++", "h"}, "CPlusPlus": {"C++", "h"}, "Go": {"Go", ""}, "Python": {"Python", ""}, "Perl": {"Perl", ""}, "Java": {"Java", ""},
	"JavaScript": {"JavaScript", ""}, "TypeScript": {"TypeScript", ""}, "Rust": {"Rust", ""}, "ShellScript": {"Sh", "hs"}, "Ruby": {"Ruby", "L"}, "PHP": {"PHP", ""},
	"Lua": {"Lua", ""}, "Tcl": {"Tcl", ""}, "Makefile": {"Make", "I"}, "Awk": {"Awk", ""}, "Vim": {"Vim", ""}, "Erlang": {"Erlang", ""}, "Lisp": {"EmacsLisp", ""},
	"Scheme": {"Scheme", ""}, "OCaml": {"OCaml", ""}, "Pascal": {"Pascal", ""}, "Ada": {"Ada", ""}, "D": {"D", "VX"}, "Julia": {"Julia", ""}, "Elixir": {"Elixir", ""},
	"CSharp": {"C#", ""}, "Kotlin": {"Kotlin", ""}, "R": {"R", ""}, "SQL": {"SQL", ""}, "Protobuf": {"Protobuf", ""}, "CMake": {"CMake", ""}, "Fortran": {"Fortran", ""},
	"Haskell": {"Haskell", ""}, "Assembly": {"Asm", ""}, "M4": {"M4", ""},
}

// TestCtags compares the names found with those of ctags, file by file, on
// sources that are here: recall is how many of ctags' names we have, precision
// how many of ours it has.
func TestCtags(t *testing.T) {
	if _, err := exec.LookPath("ctags"); err != nil {
		t.Skip("universal-ctags is not installed")
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Skip("no go command")
	}
	floors := map[string]float64{"Go": 0.98, "Python": 0.98}
	dirs := map[string][]string{"Go": {filepath.Join(strings.TrimSpace(string(root)), "src/net")}, "Python": {"/usr/lib/python3.11"}}
	for tree := range strings.SplitSeq(*trees, ",") {
		if typ, dir, ok := strings.Cut(tree, "="); ok {
			dirs[typ] = append(dirs[typ], dir)
		}
	}
	for _, typ := range slices.Sorted(maps.Keys(dirs)) {
		t.Run(typ, func(t *testing.T) {
			files := sourceFiles(typ, dirs[typ], *treeSize)
			if len(files) == 0 {
				t.Skip("no sources here")
			}
			recall := compare(t, typ, files)
			if recall < floors[typ] {
				t.Errorf("recall: got %.3f, want at least %.3f", recall, floors[typ])
			}
		})
	}
}

// sourceFiles are files of a type, up to size bytes in all, spread over the tree.
func sourceFiles(typ string, dirs []string, size int64) []string {
	suffix := make(map[string]bool)
	for s := range strings.FieldsSeq(languages()[typ].suffixes) {
		suffix["."+s] = true
	}
	var all []string
	for _, dir := range dirs {
		filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return nil
			}
			if strings.Contains(e.Name(), ".min.") { // nobody reads such
				return nil
			}
			if suffix[strings.ToLower(filepath.Ext(p))] || typ == "Makefile" && strings.HasPrefix(e.Name(), "Makefile") {
				all = append(all, p)
			}
			return nil
		})
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Compare(scatter(a), scatter(b)) })
	var files []string
	for _, f := range all {
		if st, err := os.Stat(f); err == nil && st.Size() < 1<<20 {
			if size -= st.Size(); size < 0 {
				break
			}
			files = append(files, f)
		}
	}
	return files
}

func scatter(s string) (h uint32) {
	for i := range len(s) {
		h = h*16777619 ^ uint32(s[i])
	}
	return h * 2654435761
}

// compare tells recall, without the names that doubt says are none of a reader's.
func compare(t *testing.T, typ string, files []string) float64 {
	theirs, ctagsTime := ctags(t, typ, files)
	var both, ours, their, bytesRead int
	var missed, extra []string
	doubts := make(map[string]int)
	l := languages()[typ]
	var spent time.Duration
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		text = bytes.TrimPrefix(text, []byte("\uFEFF"))
		bytesRead += len(text)
		start := processorTime(t)
		m := l.mask(text, 8<<10)
		s := &symbols{seen: map[string]bool{}, room: 64 << 20}
		l.find(m.code, s)
		spent += processorTime(t) - start
		want := theirs[f]
		d := newDoubts(typ, f, text, want)
		for _, sym := range s.all {
			if _, ok := want[sym.name]; ok {
				both++
			} else if len(extra) < 10000 {
				extra = append(extra, f+" "+sym.name)
			}
		}
		for n, tag := range want {
			if s.seen[n] {
				continue
			}
			if why := d.why(tag); why != "" {
				doubts[why]++
				if !*doubtful {
					continue
				}
				n += " (" + why + ")"
			}
			missed = append(missed, fmt.Sprintf("%s:%d %s", f, tag.line, n))
		}
		ours += len(s.all)
		their += len(want)
	}
	sure := their
	for _, n := range doubts {
		sure -= n
	}
	recall, precision := float64(both)/float64(max(their, 1)), float64(both)/float64(max(ours, 1))
	t.Logf("%s: %d files, %d names of ctags, recall %.3f, precision %.3f; %.0f MB/s, ctags %.0f", typ, len(files), their, recall, precision,
		float64(bytesRead)/1e6/spent.Seconds(), float64(bytesRead)/1e6/ctagsTime.Seconds())
	recall = float64(both) / float64(max(sure, 1))
	if sure < their {
		t.Logf("%s: recall %.3f of %d names without %v", typ, recall, sure, doubts)
	}
	sample(t, "missed", missed)
	sample(t, "extra", extra)
	return recall
}

// processorTime is what this process has used so far.
func processorTime(t *testing.T) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func sample(t *testing.T, what string, names []string) {
	if *disagree == 0 {
		return
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(scatter(a), scatter(b)) })
	for _, n := range names[:min(len(names), *disagree)] {
		t.Logf("%s: %s", what, n)
	}
}

// ctags asks for the names in files, and tells the processor time that took.
func ctags(t *testing.T, typ string, files []string) (map[string]map[string]ctag, time.Duration) {
	t.Helper()
	lang := ctagsName[typ]
	cmd := exec.Command("ctags", "--options=NONE", "--language-force="+lang.name, "-u", "-x", "--_xformat=%N\t%F\t%k\t%n\t%p\t%s", "-L", "-")
	cmd.Stdin = strings.NewReader(strings.Join(files, "\n"))
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	names := make(map[string]map[string]ctag)
	for _, f := range files {
		names[f] = make(map[string]ctag)
	}
	r := bufio.NewScanner(bytes.NewReader(out))
	r.Buffer(nil, 1<<20)
	for r.Scan() {
		f := strings.Split(r.Text(), "\t")
		if len(f) < 5 || strings.HasPrefix(f[0], "__anon") || strings.HasPrefix(f[0], "Anonymous") || f[0] == "" || strings.Contains(f[0], " ") && !strings.HasPrefix(f[0], "operator") {
			continue
		}
		if strings.Contains(lang.without, f[2]) {
			continue
		}
		if names[f[1]] != nil {
			n := strings.TrimRight(strings.ReplaceAll(f[0], `\\`, `\`), " ")
			if typ == "Tcl" { // which writes a namespace from the root
				n = strings.TrimPrefix(n, "::")
			}
			if typ == "Ruby" { // a writer is there twice
				if m := strings.TrimSuffix(n, "="); firstWord([]byte(m)) != nil && len(firstWord([]byte(m))) == len(m) && wordBytes[m[0]] {
					n = m
				}
			}
			if _, ok := names[f[1]][n]; !ok {
				line, _ := strconv.Atoi(f[3])
				names[f[1]][n] = ctag{n, f[2], line, f[4], strings.Join(f[5:], "")}
			}
		}
	}
	return names, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}
