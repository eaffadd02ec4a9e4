package essence

import (
	"io"
	"strings"

	"harvest/gather/essence/unpack"
	"harvest/gather/soif"
)

// An rpmArchive is a package: what its header says, and the archive in it, whose
// members are those of the package.
type rpmArchive struct {
	archive
	p *unpack.RPM
}

// openRPM takes the compressed archive of a package apart in its stead.
func openRPM(w *worker, c *content, in *counter) (archive, func(), error) {
	p, err := unpack.NewRPM(in)
	if err != nil {
		return nil, nil, err
	}
	payload, _ := w.nested("payload", c.path, p.Payload)
	payload.typ = "Cpio"
	for i := range encodings {
		if f := &encodings[i]; f.is(payload) || f.name == p.Compressor {
			r, done, err := f.decode(w, payload, &timed{w, payload.all()})
			if err != nil {
				return nil, nil, err
			}
			out := &meter{w: w, r: r, in: in}
			return &rpmArchive{unpack.NewCpio(out), p}, done, nil
		}
	}
	return &rpmArchive{unpack.NewCpio(io.Reader(payload.all())), p}, keepNothing, nil
}

// Notes tells what the header says.
func (a *rpmArchive) Notes(w *worker, o *soif.Object, c *content) {
	p := a.p
	w.set(o, "Title", strings.Join(strings.Fields(p.Name+" "+p.Version), " "))
	w.set(o, "Description", p.Summary)
	w.set(o, "Abstract", p.Description)
	w.set(o, "Version", strings.Trim(p.Version+"-"+p.Release, "-"))
	w.set(o, "Category", p.Group)
	w.set(o, "Copyright", p.License)
	w.set(o, "URL-References", p.URL)
}
