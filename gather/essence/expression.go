package essence

import (
	"regexp"
	"sync"
)

// expression gives a regular expression that is compiled when it is first used.
// All of them together take longer than most commands of the program run, and
// few of those summarize.
func expression(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// re compiles the expressions of tables, which wait to be used as a whole.
var re = regexp.MustCompile
