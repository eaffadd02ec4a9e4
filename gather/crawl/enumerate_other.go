//go:build !linux

package crawl

// awaitExit does nothing where a child cannot be waited for without being
// reaped: its group is then ended when its output is.
func awaitExit(int) {}
