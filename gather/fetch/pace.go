package fetch

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

// A pace ends a body that comes too slowly: a server that drips a byte now and
// then would hold a connection, and a place among the fetchers, as long as it
// likes. Only the time spent waiting for bytes counts, so that a reader with
// other things to do is not taken for a slow server.
type pace struct {
	io.ReadCloser
	grace  time.Duration
	rate   int64
	cancel context.CancelCauseFunc
	ctx    context.Context // of the request, which the body does not outlive
	timer  *time.Timer
	spent  time.Duration
	n      int64
}

// newPace returns the request as it is to be sent.
func newPace(o *Options, req *http.Request) (*pace, *http.Request) {
	p := &pace{grace: o.Grace, rate: o.Rate}
	p.ctx, p.cancel = context.WithCancelCause(req.Context())
	return p, req.WithContext(p.ctx)
}

func (p *pace) body(b io.ReadCloser) io.ReadCloser {
	if b == http.NoBody {
		p.end()
		return b
	}
	p.ReadCloser = b
	return p
}

func (p *pace) end() { p.cancel(nil) }

func (p *pace) tooSlow() {
	p.cancel(fmt.Errorf("slower than %d bytes a second", p.rate))
}

func (p *pace) Read(b []byte) (int, error) {
	left := p.grace + time.Duration(float64(p.n)/float64(p.rate)*float64(time.Second)) - p.spent
	if p.timer == nil {
		p.timer = time.AfterFunc(left, p.tooSlow) // Close stops it
	} else {
		p.timer.Reset(left)
	}
	began := time.Now()
	n, err := p.ReadCloser.Read(b)
	p.timer.Stop()
	p.spent += time.Since(began)
	p.n += int64(n)
	if err != nil && err != io.EOF {
		if cause := context.Cause(p.ctx); cause != nil {
			err = cause
		}
	}
	return n, err
}

func (p *pace) Close() error {
	if p.timer != nil {
		p.timer.Stop()
	}
	err := p.ReadCloser.Close()
	p.end()
	return err
}
