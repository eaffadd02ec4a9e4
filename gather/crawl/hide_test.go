package crawl

import (
	"strings"
	"testing"
)

// TestHideUser: however a URL with a password is written, it is not shown.
func TestHideUser(t *testing.T) {
	for _, u := range []string{"http://me:geheim@x/", "HTTP:me:geheim@x/", `http:\\me:geheim@x/`, `http:/\me:geheim@x/`, "http:/me:geheim@x/",
		"http:////me:geheim@x/", "ftp:me:geheim@x/", "http://me:geheim@x/ http:me:geheim@y/", "http://me:ge@heim@x/a@b"} {
		if got := HideUser("root url='" + u + "' depth=3"); strings.Contains(got, "heim") || !strings.Contains(got, "x/' depth=3") && !strings.Contains(got, "y/' depth=3") && !strings.Contains(got, "@b' depth=3") {
			t.Errorf("%s: got %s", u, got)
		}
	}
	for _, s := range []string{"root url=http://x/a:b depth=3", "news:1234@host", "from=me@example.org", "deny=^/a:b/ c@d", "root url=http://x:80/ urls=3"} {
		if got := HideUser(s); got != s {
			t.Errorf("got %s, want %s", got, s)
		}
	}
}
