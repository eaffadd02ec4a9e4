package docs

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// demonstrations are the scripts in examples, and the row that each shows.
var demonstrations = map[string]string{
	"discovery.sh": "D-1", "reports.sh": "D-2", "series.sh": "D-3", "software.sh": "D-4", "homepages.sh": "D-5",
}

// demoPatience is how long a demonstration may take; it takes some ten seconds
// on a machine that has nothing else to do.
const demoPatience = 3 * time.Minute

// TestDemonstrations runs each script in examples as a user does. One that lacks
// a package is skipped, and says which.
func TestDemonstrations(t *testing.T) {
	bin := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", bin, "harvest/cmd/harvest").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	scripts, err := filepath.Glob("examples/*.sh")
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for _, s := range scripts {
		name := filepath.Base(s)
		if name == "demo.sh" {
			continue
		}
		row := demonstrations[name]
		if seen[row] = true; row == "" || !strings.Contains(read(t, s), "("+row+")") {
			t.Errorf("%s: got row %q, want one that its header names", name, row)
		}
		t.Run(name, func(t *testing.T) { demonstrate(t, s, bin) })
	}
	for name, row := range demonstrations {
		if !seen[row] {
			t.Errorf("%s: got no %s, want it", row, name)
		}
	}
}

func demonstrate(t *testing.T, script, bin string) {
	ctx, cancel := context.WithTimeout(t.Context(), demoPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", script)
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "TMPDIR="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 77 {
		t.Skip(strings.TrimSpace(string(out)))
	}
	if err != nil || !strings.Contains(string(out), "as it should be") {
		t.Errorf("%v\n%s", err, out)
	}
}
