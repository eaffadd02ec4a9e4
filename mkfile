# mk(1) of Plan 9 from User Space; each recipe is a line to be typed as well.

all:V:
	go build ./...

test:V:
	go test ./...

race:V:
	go test -race ./...

fuzz:V:
	sh .ci/fuzz 30s

bench:V:
	go test -run '^$' -bench . ./...

install:V:
	go install ./cmd/harvest
