package fetch

import (
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"sync"

	"golang.org/x/net/publicsuffix"
)

// Bounds of what servers may have kept here.
const (
	maxCookie  = 4096  // bytes of one, name and value
	maxCookies = 50    // that one answer may set, and one registered domain may have set
	maxSites   = 10000 // registered domains with cookies; then all are forgotten
)

// A jar keeps cookies, as cookiejar.Jar does, but not without end.
type jar struct {
	mu   sync.Mutex
	jar  *cookiejar.Jar
	have map[string]map[string]bool // by registered domain, names with host and path
}

func newJar() *jar {
	j := new(jar)
	j.reset()
	return j
}

// reset forgets everything. mu is held, or j is new.
func (j *jar) reset() {
	j.jar, _ = cookiejar.New(&cookiejar.Options{PublicSuffixList: publicsuffix.List}) // has no error to return
	j.have = make(map[string]map[string]bool)
}

// put adds to a request what its server has set.
func (j *jar) put(req *http.Request) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.have) == 0 {
		return
	}
	for _, c := range j.jar.Cookies(req.URL) {
		req.AddCookie(c)
	}
}

// take keeps what an answer sets.
func (j *jar) take(u *url.URL, resp *http.Response) {
	if len(resp.Header["Set-Cookie"]) == 0 {
		return
	}
	cookies := resp.Cookies()
	site, err := publicsuffix.EffectiveTLDPlusOne(u.Hostname())
	if err != nil {
		site = u.Hostname() // an address, or a suffix itself
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	have := j.have[site]
	if have == nil {
		if len(j.have) >= maxSites {
			j.reset()
		}
		have = make(map[string]bool)
		j.have[site] = have
	}
	var keep []*http.Cookie
	for _, c := range cookies {
		name := u.Host + c.Domain + c.Path + ";" + c.Name
		if len(c.Name)+len(c.Value) > maxCookie || len(name) > 2*maxCookie || !have[name] && len(have) >= maxCookies {
			continue
		}
		have[name] = true
		keep = append(keep, c)
	}
	j.jar.SetCookies(u, keep)
}
