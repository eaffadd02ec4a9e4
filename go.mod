module harvest

go 1.26.0

require (
	9fans.net/go v0.0.7
	github.com/abadojack/whatlanggo v1.0.1
	github.com/andybalholm/brotli v1.2.8
	github.com/bep/imagemeta v1.0.1
	github.com/blevesearch/snowballstem v0.9.0
	github.com/clipperhouse/uax29/v2 v2.7.0
	github.com/dhowden/tag v0.0.0-20240417053706-3d75831295e8
	github.com/dunglas/httpsfv v1.1.2
	github.com/fsnotify/fsnotify v1.10.1
	github.com/gabriel-vasile/mimetype v1.4.16
	github.com/gogs/chardet v0.0.0-20211120154057-b7413eaefb8f
	github.com/hanwen/go-fuse/v2 v2.12.1
	github.com/jimsmart/grobotstxt v1.0.3
	github.com/jlaffaye/ftp v0.2.4
	github.com/klauspost/compress v1.20.3
	github.com/knusbaum/go9p v1.18.0
	github.com/landlock-lsm/go-landlock v0.11.0
	github.com/miekg/dns v1.1.73
	github.com/mmcdole/gofeed v1.4.2
	github.com/nlnwa/whatwg-url v0.6.2
	github.com/nwaples/rardecode/v2 v2.4.6
	github.com/pierrec/lz4/v4 v4.1.33
	github.com/richardlehane/mscfb v1.0.9
	github.com/richardlehane/msoleps v1.0.6
	github.com/rogpeppe/go-internal v1.16.0
	github.com/spf13/pflag v1.0.10
	github.com/therootcompany/xz v1.0.1
	go.etcd.io/bbolt v1.5.0
	go.starlark.net v0.0.0-20260908191801-89a6a09411d5
	golang.org/x/net v0.62.0
	golang.org/x/sync v0.24.0
	golang.org/x/sys v0.49.0
	golang.org/x/term v0.47.0
	golang.org/x/text v0.43.0
	kernel.org/pub/linux/libs/security/libcap/psx v1.2.77
)

require (
	github.com/bits-and-blooms/bitset v1.20.0 // indirect
	github.com/fhs/mux9p v0.3.1 // indirect
	github.com/mmcdole/goxpp/v2 v2.0.0 // indirect
	golang.org/x/tools v0.51.0 // indirect
)
