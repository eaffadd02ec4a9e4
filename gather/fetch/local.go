package fetch

// A Local is a prefix of URLs whose documents are files here as well: asked for
// URL + "a/b", the file Path + "a/b" is read instead of the network, as far as a
// web server would serve it as it stands.
type Local struct {
	URL  string // canonical
	Path string // absolute
}
