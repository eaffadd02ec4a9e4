package jail

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// How often the memory of what is in a jail is looked at, at first and after a
// while: a bound of the kernel's is on each process, this one is on all.
const (
	weighFirst = 50 * time.Millisecond
	weighLater = 250 * time.Millisecond
	weighSoon  = 40 // times
)

// weigh kills the program when its processes together hold more than max.
func (p *Process) weigh(max int64, ended <-chan struct{}) {
	tick := time.NewTicker(weighFirst)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-ended:
			return
		case <-tick.C:
		}
		if n == weighSoon {
			tick.Reset(weighLater)
		}
		pid := p.box.cmd.Process.Pid
		held := resident(pid)
		if p.box.kind == warden {
			held = 0
		}
		for _, below := range descendants(pid) {
			held += resident(below)
		}
		if held > max {
			p.Kill(Met("killed: it held more than %d bytes of memory", max))
			return
		}
	}
}

// resident is the memory that a process holds, 0 when it is gone.
func resident(pid int) int64 {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	if err != nil {
		return 0
	}
	f := bytes.Fields(b)
	if len(f) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(string(f[1]), 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}

// nothing is the function inside that a ground is tried with.
const nothing = "nothing"

// Ground tells what a jail of this process stands on, in words: what is lacking
// on this machine, too.
func Ground() string {
	on, err := ground()
	if err != nil {
		return "no jail: " + err.Error()
	}
	words := []string{map[int]string{spaces: "namespaces", userSpaces: "namespaces of a user", warden: "a warden, no namespaces"}[on]}
	if abi := landlockABI(); abi > 0 {
		words = append(words, fmt.Sprintf("Landlock %d", abi))
	} else {
		words = append(words, "no Landlock")
	}
	if filterArch != 0 {
		words = append(words, "a system call filter")
	} else {
		words = append(words, "no system call filter")
	}
	return strings.Join(words, ", ")
}
