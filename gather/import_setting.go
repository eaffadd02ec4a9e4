package gather

import (
	"net/url"
	"path/filepath"
	"strconv"
	"strings"

	"harvest/fs/ndb"
	"harvest/gather/crawl"
)

// noMeaning are the settings of the original that have no effect here, and why.
var noMeaning = map[string]string{
	"data-directory":    "a Gatherer keeps its state in the server's state directory",
	"debug-options":     "debugging is up to the server: loglevel in ctl of the root",
	"errorlog-file":     "errors are in log",
	"gatherd-inetd":     "the server is always there",
	"gatherer-host":     "the host is that of the machine the Gatherer was made on",
	"gatherer-name":     "the name is that of the Gatherer's directory",
	"gatherer-options":  "the program that had them is no more",
	"gatherer-version":  "the version is the server's",
	"keep-cache":        "a visit that was cut off is taken up anyway",
	"log-file":          "what is done is in events and log",
	"post-summarizing":  "there are no such rules yet",
	"working-directory": "a Gatherer keeps its state in the server's state directory",
}

// setting translates a line outside of the sections.
func (t *translator) setting(l oldLine) error {
	name := settingName(l.words[0])
	value := l.value()
	seconds := func(key string) error {
		n, err := strconv.ParseFloat(value, 64)
		if err != nil || !(n >= 0 && n < 1e9) {
			return l.errorf("%s: '%s' is not a number of seconds", name, value)
		}
		t.entry(l, ndb.Pair{Key: key, Value: strconv.FormatFloat(n, 'f', -1, 64) + "s"})
		return nil
	}
	switch lower := strings.ToLower(name); lower {
	case "": // an entry, as it is
		t.text += strings.TrimSpace(t.redacted[l.n-1]) + "\n"
		t.from = append(t.from, l.n)
	case "access-delay", "top-directory", "lib-directory": // looked up where they are needed
	case "refresh-rate":
		return seconds("refresh")
	case "time-to-live":
		return seconds("ttl")
	case "http-proxy":
		if value != "" {
			t.entry(l, ndb.Pair{Key: "proxy", Value: "http://" + strings.TrimPrefix(strings.TrimSuffix(value, "/"), "http://")})
		}
	case "local-mapping":
		w := strings.Fields(value)
		if len(w) != 2 {
			return l.errorf("Local-Mapping: a line is a URL and a folder")
		}
		t.entry(l, ndb.Pair{Key: "local"}, ndb.Pair{Key: "url", Value: w[0]}, ndb.Pair{Key: "path", Value: strings.TrimPrefix(w[1], "file:")})
	case "gatherer-port":
		t.ignore(l, name, "nothing listens that was not asked to: gatherd listen=%s", clipped(value))
	case "ftp-auth":
		return t.ftpAuth(l)
	case "http-basic-auth":
		t.realms = append(t.realms, l)
	case "essence-options":
		return t.essence(l, name)
	default:
		why := noMeaning[lower]
		if why == "" {
			why = "it is not known"
		}
		t.ignore(l, name, "%s", why)
	}
	return nil
}

// ftpAuth translates "FTP-Auth: host[:port] user password".
func (t *translator) ftpAuth(l oldLine) error {
	w := strings.Fields(l.value())
	if len(w) != 3 {
		return l.errorf("FTP-Auth: a line is a host, a user and a password")
	}
	t.secret("ftp", ndb.Pair{Key: "host", Value: w[0]}, ndb.Pair{Key: "user", Value: w[1]}, ndb.Pair{Key: "password", Value: w[2]})
	t.redact(l, "# FTP-Auth: "+w[0]+" "+w[1]+", whose password has gone to secrets")
	return nil
}

// basicAuth translates lines "HTTP-Basic-Auth: realm user password". A password
// is for a host now; it becomes one for each that is gathered from.
func (t *translator) basicAuth() {
	for _, l := range t.realms {
		w := strings.Fields(l.value())
		if len(w) < 3 {
			t.ignore(l, "HTTP-Basic-Auth", "a line is a realm, a user and a password")
			t.redact(l, "# HTTP-Basic-Auth: incomplete")
			continue
		}
		n := len(w)
		for _, host := range t.hosts {
			t.secret("auth", ndb.Pair{Key: "host", Value: host}, ndb.Pair{Key: "user", Value: w[n-2]}, ndb.Pair{Key: "password", Value: w[n-1]})
		}
		t.redact(l, "# HTTP-Basic-Auth: "+strings.Join(w[:n-2], " ")+" "+w[n-2]+", whose password has gone to secrets")
		if len(t.hosts) == 0 {
			t.ignore(l, "HTTP-Basic-Auth", "no web server is gathered from")
		}
	}
}

// essence translates the options of the summarizer.
func (t *translator) essence(l oldLine, name string) error {
	w := strings.Fields(l.value())
	for i := 0; i < len(w); i++ {
		switch option := w[i]; option {
		case "--max-deletions":
			if i++; i == len(w) {
				return l.errorf("%s: %s: the number is missing", name, option)
			}
			if n, err := strconv.Atoi(w[i]); err != nil || n < 0 {
				return l.errorf("%s: %s: '%s' is not a number", name, option, w[i])
			}
			t.entry(l, ndb.Pair{Key: "maxdelete", Value: w[i]})
		case "--full-text":
			t.entry(l, ndb.Pair{Key: "fulltext", Value: "yes"})
		case "--allowlist", "--stoplist":
			i++
			t.ignore(l, option, "what is summarized is said in types")
		case "--fake-md5s", "--fast-summarizing", "--minimal-bookkeeping", "--no-access", "--no-keywords", "--type-only", "--verbose":
			t.ignore(l, option, "the program that had it is no more")
		default:
			t.ignore(l, clipped(option), "an option of %s that is not known", name)
		}
	}
	return nil
}

// fileName is a file that a line names: below Lib-Directory, or lib of
// Top-Directory, if its name does not begin with a slash.
func (t *translator) fileName(name string) (string, bool) {
	if filepath.IsAbs(name) {
		return name, true
	}
	top, lib := t.settings["top-directory"], t.settings["lib-directory"]
	switch {
	case filepath.IsAbs(lib):
		return filepath.Join(lib, name), true
	case filepath.IsAbs(top) && lib != "":
		return filepath.Join(top, lib, name), true
	case filepath.IsAbs(top) && strings.HasPrefix(name, "lib/"):
		return filepath.Join(top, name), true
	case filepath.IsAbs(top):
		return filepath.Join(top, "lib", name), true
	}
	return "", false
}

// withoutUser takes user and password out of a URL and keeps them as secrets.
func (t *translator) withoutUser(l oldLine, raw string) string {
	user := userOf(raw)
	if user == "" {
		return raw
	}
	name, password, _ := strings.Cut(user, ":")
	unescaped := func(s string) string {
		if u, err := url.PathUnescape(s); err == nil {
			return u
		}
		return s
	}
	plain := strings.Replace(raw, user+"@", "", 1)
	host, _, _ := strings.Cut(afterScheme(plain), "/")
	kind := "auth"
	if strings.HasPrefix(strings.ToLower(plain), "ftp") {
		kind = "ftp"
	}
	t.secret(kind, ndb.Pair{Key: "host", Value: host}, ndb.Pair{Key: "user", Value: unescaped(name)}, ndb.Pair{Key: "password", Value: unescaped(password)})
	rest := strings.Join(append([]string{plain}, l.words[1:]...), " ")
	t.redact(l, rest)
	return plain
}

// hidePasswords takes passwords out of a text that is refused, and so may be
// read: those of URLs, and of lines that are for them.
func hidePasswords(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if w := strings.Fields(line); len(w) > 0 {
			switch name := settingName(w[0]); strings.ToLower(name) {
			case "ftp-auth", "http-basic-auth":
				line = name + ": ...\n"
			}
		}
		b.WriteString(crawl.HideUser(line))
	}
	return b.String()
}

// clipped shortens what goes into a message.
func clipped(s string) string {
	s = crawl.HideUser(s)
	if len(s) > 60 {
		s = s[:57] + "..."
	}
	return strings.ToValidUTF8(s, "?")
}
