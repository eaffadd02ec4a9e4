package main

import (
	"os"
	"os/exec"
	"testing"
)

// TestSoak works with a Broker for a while and wants nothing to grow; the program
// itself compares.
func TestSoak(t *testing.T) {
	n := os.Getenv("HARVEST_OPERATIONS")
	if n == "" {
		n = "2000"
	}
	t.Logf("%s operations; HARVEST_OPERATIONS=20000 makes 20000", n)
	exe, err := exec.LookPath("harvest")
	if err != nil {
		t.Fatal(err) // testscript.Main puts it in the path
	}
	out, err := exec.CommandContext(t.Context(), exe, "bench", "soak", "--operations", n, "--objects", "500", "--work", t.TempDir()).CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
	t.Logf("%s", out)
}
