package crawl

import (
	"errors"

	sys "golang.org/x/sys/unix"
)

// awaitExit waits until a child has ended and leaves it to be waited for.
func awaitExit(pid int) {
	for {
		err := sys.Waitid(sys.P_PID, pid, nil, sys.WEXITED|sys.WNOWAIT, nil)
		if !errors.Is(err, sys.EINTR) {
			return
		}
	}
}
