// Package docs holds the manual and what tests it.
package docs

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patience is how long the examples of a page may run.
const patience = time.Minute

// sections of a page, in their order; those in optional may be missing.
var (
	sections = []string{"NAME", "SYNOPSIS", "DESCRIPTION", "FILES", "EXAMPLES", "SEE ALSO", "DIAGNOSTICS", "BUGS"}
	optional = []string{"FILES"}
	pageName = regexp.MustCompile(`^([a-z0-9-]+)\.([1468])\.md$`)
	heading  = regexp.MustCompile(`(?m)^## (.+)$`)
	link     = regexp.MustCompile(`\[([^\]]*)\]\(([^)\s]+)\)`)
	manual   = regexp.MustCompile(`^([a-z0-9-]+)\(([1468])\)$`)
)

func pages(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	out := slices.DeleteFunc(all, func(name string) bool { return !pageName.MatchString(name) })
	if len(out) == 0 {
		t.Fatal("got no manual pages")
	}
	return out
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestSections holds every page to the parts of a manual page.
func TestSections(t *testing.T) {
	for _, name := range pages(t) {
		for _, complaint := range checkPage(name, read(t, name)) {
			t.Errorf("%s: %s", name, complaint)
		}
	}
}

func checkPage(name, text string) []string {
	var out []string
	m := pageName.FindStringSubmatch(name)
	if want := fmt.Sprintf("# %s(%s)\n", m[1], m[2]); !strings.HasPrefix(text, want) {
		out = append(out, fmt.Sprintf("got another first line, want %q", want))
	}
	at := 0
	for _, h := range heading.FindAllStringSubmatch(strip(text), -1) {
		i := slices.Index(sections, h[1])
		if i < 0 {
			continue // a page may have more
		}
		if i < at {
			out = append(out, h[1]+": comes after "+sections[at-1]+", want it before")
		}
		at = i + 1
	}
	parts := split(text)
	for _, s := range sections {
		if body, ok := parts[s]; !slices.Contains(optional, s) && (!ok || strings.TrimSpace(body) == "") {
			out = append(out, s+": is missing")
		}
	}
	what, _, dash := strings.Cut(strings.TrimSpace(parts["NAME"]), " - ")
	if parts["NAME"] != "" && (!dash || !slices.Contains(strings.Fields(strings.ReplaceAll(what, ",", " ")), m[1])) {
		out = append(out, fmt.Sprintf("NAME: got %q, want %s, other names if any, a dash, and what it is", strings.TrimSpace(parts["NAME"]), m[1]))
	}
	if len(transcript(text)) == 0 {
		out = append(out, "EXAMPLES: got no ```sh block with a command, want one that can be run")
	}
	return out
}

// strip blanks fenced blocks, in which a line may look like a heading.
func strip(text string) string {
	fenced := false
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		fence := strings.HasPrefix(line, "```")
		if fence || fenced {
			lines[i] = ""
		}
		fenced = fenced != fence
	}
	return strings.Join(lines, "\n")
}

// split gives the text below each heading of a section.
func split(text string) map[string]string {
	out := make(map[string]string)
	section, fenced := "", false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
		}
		if h := heading.FindStringSubmatch(strings.TrimRight(line, "\n")); h != nil && !fenced {
			section = h[1]
			continue
		}
		out[section] += line
	}
	return out
}

// TestLinks holds links to other files of the repository to lead there, and
// those called page(N) to lead to that page.
func TestLinks(t *testing.T) {
	all, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(all, "../README.md") {
		for _, l := range link.FindAllStringSubmatch(strip(read(t, name)), -1) {
			if why := checkLink(filepath.Dir(name), l[1], l[2]); why != "" {
				t.Errorf("%s: %s: %s", name, l[0], why)
			}
		}
	}
}

func checkLink(dir, text, to string) string {
	to, _, _ = strings.Cut(to, "#")
	if to == "" || strings.Contains(to, "://") || strings.HasPrefix(to, "mailto:") {
		return ""
	}
	if _, err := os.Stat(filepath.Join(dir, to)); err != nil {
		return "leads nowhere"
	}
	if m := manual.FindStringSubmatch(text); m != nil && filepath.Base(to) != m[1]+"."+m[2]+".md" {
		return "leads to another page"
	}
	return ""
}

// A command of a transcript, and the lines that it is to print.
type command struct {
	line int // in the page
	text string
	want []string
	need []string // programs, or "fuse", without which its block is left out
}

// transcript collects the commands of the sh blocks in EXAMPLES.
func transcript(text string) []command {
	var out []command
	var need []string
	in, fenced, section := false, false, ""
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimRight(line, "\n")
		if info, ok := strings.CutPrefix(line, "```"); ok {
			fenced = !fenced
			words := strings.Fields(info)
			in = fenced && section == "EXAMPLES" && len(words) > 0 && words[0] == "sh"
			if in {
				need = words[1:]
			}
			continue
		}
		if h := heading.FindStringSubmatch(line); h != nil && !fenced {
			section = h[1]
		}
		if !in {
			continue
		}
		if cmd, ok := strings.CutPrefix(line, "$ "); ok {
			out = append(out, command{line: n, text: cmd + "\n", need: need})
			continue
		}
		if len(out) == 0 {
			continue
		}
		last := &out[len(out)-1]
		if more, ok := strings.CutPrefix(line+" ", "> "); ok && len(last.want) == 0 {
			last.text += strings.TrimSuffix(more, " ") + "\n"
			continue
		}
		last.want = append(last.want, line)
	}
	return out
}

// TestExamples runs the examples of each page.
func TestExamples(t *testing.T) {
	bin := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", bin, "harvest/cmd/harvest").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	for _, name := range pages(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var cmds []command
			for _, c := range transcript(read(t, name)) {
				if why := missing(c.need); why != "" {
					t.Logf("line %d is left out: %s", c.line, why)
					continue
				}
				cmds = append(cmds, c)
			}
			got, err := play(t.TempDir(), bin, cmds)
			for i, c := range cmds {
				if i >= len(got) {
					t.Errorf("line %d: %s: did not run to its end", c.line, strings.TrimSpace(c.text))
					break
				}
				if !c.shows(got[i]) {
					t.Errorf("line %d: %s\ngot:\n%s(exit %d)\nwant:\n%s", c.line, strings.TrimSpace(c.text), got[i].text, got[i].status, strings.Join(c.want, "\n"))
				}
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// missing tells why a block cannot run here.
func missing(need []string) string {
	for _, n := range need {
		if n == "fuse" {
			f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
			if err != nil {
				return err.Error()
			}
			f.Close()
			continue
		}
		if _, err := exec.LookPath(n); err != nil {
			return err.Error()
		}
	}
	return ""
}

// output is what a command wrote, and how it ended.
type output struct {
	text   string
	status int
}

// shows tells whether the page shows that output. A last line of (exit N)
// is about the status, which else may be any.
func (c command) shows(got output) bool {
	want := lines(strings.Join(c.want, "\n"))
	if status, ok := strings.CutPrefix(want[len(want)-1], "(exit "); ok {
		if status != fmt.Sprintf("%d)", got.status) {
			return false
		}
		want = want[:len(want)-1]
	}
	return match(want, lines(got.text))
}

// mark stands before and after the status that follows a command's output.
const mark = "\x1e"

// play runs commands in one shell, in an empty folder, and gives what each
// of them wrote. The status of a command is still in $? for the next. What
// they leave running is ended.
func play(dir, bin string, cmds []command) ([]output, error) {
	var script strings.Builder
	for _, c := range cmds {
		fmt.Fprintf(&script, "%s\n{ status=$?; printf '%s%%d%s' $status; (exit $status); } 2>&1\n", strings.TrimSuffix(c.text, "\n"), mark, mark)
	}
	home := filepath.Join(dir, "work")
	if err := os.Mkdir(home, 0o755); err != nil {
		return nil, err
	}
	// A file, since a pipe would be held open by what runs on.
	name := filepath.Join(dir, "out")
	out, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	file := filepath.Join(dir, "script")
	if err := os.WriteFile(file, []byte(script.String()), 0o600); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", file)
	cmd.Dir, cmd.Stdout, cmd.Stderr = home, out, out
	cmd.Env = slices.DeleteFunc(os.Environ(), func(e string) bool {
		return strings.HasPrefix(e, "HARVEST_") || strings.HasPrefix(e, "XDG_")
	})
	cmd.Env = append(cmd.Env, "PATH="+bin+":"+os.Getenv("PATH"), "HOME="+home, "PWD="+home, "LC_ALL=C.UTF-8", "TZ=UTC")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	cmd.Wait() // its status is that of the last command, which is what it is
	stop(cmd.Process.Pid)
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("the examples are not done after %v", patience)
	}
	var all []output
	for parts := strings.Split(string(b), mark); len(parts) > 2; parts = parts[2:] {
		status, serr := strconv.Atoi(parts[1])
		if serr != nil {
			return all, serr
		}
		all = append(all, output{parts[0], status})
	}
	return all, err
}

// stop ends what the shell left in its process group: politely, so that a
// mount is undone, then not.
func stop(group int) {
	if syscall.Kill(-group, syscall.SIGTERM) != nil {
		return // nobody there
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range 100 {
		<-tick.C
		if syscall.Kill(-group, 0) != nil {
			return
		}
	}
	syscall.Kill(-group, syscall.SIGKILL)
}

func lines(text string) []string { return strings.Split(strings.TrimRight(text, "\n"), "\n") }

// match compares output with what a page shows of it, in which a line of
// three dots is any number of lines and an ellipsis any text.
func match(want, got []string) bool {
	if len(want) == 0 {
		want = []string{""}
	}
	for len(want) > 0 && want[0] != "..." {
		if len(got) == 0 || !matchLine(want[0], got[0]) {
			return false
		}
		want, got = want[1:], got[1:]
	}
	if len(want) == 0 {
		return len(got) == 0
	}
	if len(want) == 1 {
		return true
	}
	for i := range got {
		if match(want[1:], got[i:]) {
			return true
		}
	}
	return false
}

func matchLine(want, got string) bool {
	parts := strings.Split(want, "…")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	return regexp.MustCompile("^(?s:" + strings.Join(parts, ".*") + ")$").MatchString(got)
}

func TestMatch(t *testing.T) {
	tests := []struct {
		want, got string
		ok        bool
	}{
		{"", "", true},
		{"", "a\n", false},
		{"a", "", false},
		{"a", "a\n", true},
		{"a", "a", true},
		{"a\n\nb", "a\n\nb\n", true},
		{"a\nb", "a\n", false},
		{"a", "a\nb\n", false},
		{"a…c", "abc\n", true},
		{"a…c", "ac\n", true},
		{"a…c", "ab\nc\n", false},
		{"a.c", "abc\n", false},
		{"…", "anything", true},
		{"...", "", true},
		{"...", "a\nb\n", true},
		{"a\n...\nc", "a\nb\nb\nc\n", true},
		{"a\n...\nc", "a\nc\n", true},
		{"a\n...\nc", "a\nb\n", false},
		{"...\nc", "c\nb\nc\n", true},
		{"...\nc", "c\nb\n", false},
	}
	for _, tt := range tests {
		if got := match(lines(tt.want), lines(tt.got)); got != tt.ok {
			t.Errorf("match %q with %q: got %t, want %t", tt.want, tt.got, got, tt.ok)
		}
	}
}

const sample = "# x(1)\n\n## NAME\n\nx - a page\n\n## SYNOPSIS\n\n    x\n\n## DESCRIPTION\n\nText.\n\n```sh\n$ false\n```\n\n" +
	"## EXAMPLES\n\n```sh\n$ cat <<E\n> ## one\n>\n> two\n> E\n## one\n\ntwo\n$ false\n(exit 1)\n$ false\n$ echo $?; echo bad >&2\n1\nbad\n```\n\n" +
	"```\n$ not run\n```\n\n```sh nosuchprogram\n$ sleep 1000 & cd /\n```\n\n## SEE ALSO\n\n[x(1)](x.1.md)\n\n## DIAGNOSTICS\n\nNone.\n\n## BUGS\n\nNone.\n"

// TestPage holds the reading of pages to one.
func TestPage(t *testing.T) {
	if got := checkPage("x.1.md", sample); got != nil {
		t.Errorf("got the complaints %q, want none", got)
	}
	bad := []struct{ old, new, want string }{
		{"# x(1)", "# y(1)", "first line"},
		{"x - a", "a", "NAME: got"},
		{"x - a", "xx - a", "NAME: got"},
		{"## BUGS\n", "## Bugs\n", "BUGS: is missing"},
		{"\nText.\n\n```sh\n$ false\n```\n", "", "DESCRIPTION: is missing"},
		{"## DIAGNOSTICS\n\nNone.\n\n## BUGS", "## BUGS\n\nNone.\n\n## DIAGNOSTICS", "want it before"},
		{"## EXAMPLES\n", "## EXAMPLE\n", "EXAMPLES: got no"},
	}
	for _, b := range bad {
		if got := strings.Join(checkPage("x.1.md", strings.Replace(sample, b.old, b.new, 1)), "\n"); !strings.Contains(got, b.want) {
			t.Errorf("%q for %q: got the complaints %q, want %q", b.new, b.old, got, b.want)
		}
	}
	cmds := transcript(sample)
	if len(cmds) != 5 {
		t.Fatalf("got %d commands, want 5: %+v", len(cmds), cmds)
	}
	if why := missing(cmds[4].need); why == "" {
		t.Error("nosuchprogram: got no complaint")
	}
	cmds[4].text = "sleep 1000 & echo $!\n" // to be ended with the shell
	got, err := play(t.TempDir(), "", cmds)
	if err != nil || len(got) != 5 {
		t.Fatalf("got %v, %v, want the output of 5 commands", got, err)
	}
	for i, c := range cmds[:4] {
		if !c.shows(got[i]) {
			t.Errorf("%s: got %v, want %q", c.text, got[i], c.want)
		}
	}
	if _, err := os.Stat("/proc/" + strings.TrimSpace(got[4].text)); err == nil {
		t.Error("what was left running still runs")
	}
	for want, ok := range map[string]bool{"(exit 1)": true, "(exit 2)": false, "": true, "x\n(exit 1)": false, "...\n(exit 1)": true} {
		if got := (command{want: strings.Split(want, "\n")}).shows(output{"", 1}); got != ok {
			t.Errorf("%q shows a silent exit 1: got %t, want %t", want, got, ok)
		}
	}
	for _, l := range [][2]string{{"x(1)", "docs_test.go"}, {"x", "nosuch.md"}} {
		if checkLink(".", l[0], l[1]) == "" {
			t.Errorf("link %q: got no complaint", l)
		}
	}
}
