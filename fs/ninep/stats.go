package ninep

import (
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/knusbaum/go9p/proto"
)

type counters struct {
	conns, fids                                      atomic.Int64
	accepted, attached, refused, evicted, broken     atomic.Int64
	replies, errors, flushed, in, out, read, written atomic.Int64
	requests                                         [28]atomic.Int64
}

var requestNames = map[int]string{
	proto.Tauth: "auth", proto.Tattach: "attach", proto.Tflush: "flush", proto.Twalk: "walk",
	proto.Topen: "open", proto.Tcreate: "create", proto.Tread: "read", proto.Twrite: "write",
	proto.Tclunk: "clunk", proto.Tremove: "remove", proto.Tstat: "stat", proto.Twstat: "wstat",
}

// Stats is what the server has done and holds, as Prometheus text.
func (v *Server) Stats() string {
	var b strings.Builder
	one := func(name, kind, help string, n *atomic.Int64) {
		fmt.Fprintf(&b, "# HELP harvest_9p_%s %s\n# TYPE harvest_9p_%s %s\nharvest_9p_%s %d\n", name, help, name, kind, name, n.Load())
	}
	s := &v.stats
	one("connections", "gauge", "Connections there are.", &s.conns)
	one("fids", "gauge", "Fids there are.", &s.fids)
	one("accepted_total", "counter", "Connections accepted.", &s.accepted)
	one("attached_total", "counter", "Connections that attached.", &s.attached)
	one("refused_total", "counter", "Connections refused: too many.", &s.refused)
	one("evicted_total", "counter", "Connections closed before their attach to make room.", &s.evicted)
	one("broken_total", "counter", "Connections ended by malformed messages and other trouble.", &s.broken)
	one("replies_total", "counter", "Messages sent.", &s.replies)
	one("errors_total", "counter", "Requests refused.", &s.errors)
	one("flushed_total", "counter", "Requests that a Tflush met.", &s.flushed)
	one("received_bytes_total", "counter", "Bytes of messages received.", &s.in)
	one("sent_bytes_total", "counter", "Bytes of messages sent.", &s.out)
	one("read_bytes_total", "counter", "Bytes of files read.", &s.read)
	one("written_bytes_total", "counter", "Bytes of files written.", &s.written)
	fmt.Fprintf(&b, "# HELP harvest_9p_requests_total Requests received.\n# TYPE harvest_9p_requests_total counter\n")
	for i := range s.requests {
		if name := requestNames[100+i]; name != "" {
			fmt.Fprintf(&b, "harvest_9p_requests_total{type=%q} %d\n", name, s.requests[i].Load())
		}
	}
	return b.String()
}
