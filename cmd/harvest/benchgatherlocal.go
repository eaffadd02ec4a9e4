package main

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// local gathers trees of files: first, unchanged, and after one has changed.
func (b *gatherBench) local(ctx context.Context, args []string, std std) (err error) {
	work, done, err := workFolder(b.work)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	if work, err = filepath.Abs(work); err != nil {
		return err
	}
	dirs, one, err := b.trees(args, work)
	if err != nil {
		return err
	}
	var conf strings.Builder
	for _, d := range dirs {
		fmt.Fprintf(&conf, "root url=%s\n", (&url.URL{Scheme: "file", Path: d + "/"}).String())
	}
	dir := filepath.Join(work, "gatherer")
	if err := b.begin(dir, conf.String()); err != nil {
		return err
	}
	rows := [][]string{gatherHead("files", "fetched", "MB")}
	for _, name := range []string{"first", "unchanged", "one"} {
		if name == "one" {
			if one == "" {
				continue
			}
			if err := appendLine(one); err != nil {
				return err
			}
		}
		r, err := b.child(ctx, name, dir, std)
		if err != nil {
			return err
		}
		r.counts(std.out)
		rows = append(rows, append(r.row(r.done()), fmt.Sprint(number(r.count, "fetched")), fmt.Sprintf("%.0f", float64(number(r.count, "bytes-in"))/1e6)))
	}
	peers, err := b.localPeers(ctx, dirs, work, std)
	fmt.Fprintln(std.out)
	table(std.out, append(rows, peers...))
	return err
}

// trees are the folders to gather, and a file of them that may be changed.
func (b *gatherBench) trees(args []string, work string) (dirs []string, one string, err error) {
	switch {
	case b.generate > 0 && len(args) > 0:
		return nil, "", usagef("--generate makes the files itself: name no folder")
	case b.generate > 0:
		dir := filepath.Join(work, "files")
		one, err = generateFiles(dir, b.generate)
		return []string{dir}, one, err
	case len(args) == 0:
		for _, d := range siteManuals {
			args = append(args, d)
		}
	}
	for _, a := range args {
		d, err := filepath.Abs(a)
		if err == nil {
			d, err = filepath.EvalSymlinks(d)
		}
		if err != nil {
			return nil, "", err
		}
		dirs = append(dirs, d)
	}
	return dirs, "", nil
}

// generateFiles makes n small pages, 200 a folder, unless they are there.
func generateFiles(dir string, n int) (one string, err error) {
	name := func(i int) string { return filepath.Join(dir, fmt.Sprintf("%04d", i/200), fmt.Sprintf("%06d.html", i)) }
	for i := range n {
		if i%200 == 0 {
			if err := os.MkdirAll(filepath.Dir(name(i)), 0o755); err != nil {
				return "", err
			}
		}
		if _, err := os.Stat(name(i)); err == nil {
			continue
		}
		text := fmt.Sprintf("<title>Page %d</title><h1>Of %d</h1><p>The words of page %d, which are few.\n", i, i%977, i)
		if err := os.WriteFile(name(i), []byte(text), 0o644); err != nil {
			return "", err
		}
	}
	return name(n / 2), nil
}

func appendLine(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "<p>changed at %s\n", time.Now())
	return errors.Join(err, f.Close())
}

// localPeerPrograms go over the same files.
func localPeerPrograms() []gatherPeer {
	return []gatherPeer{
		{"find", []string{"find", "$DIR", "-type", "f", "-printf", "%s %T@\n"}},
		{"find, md5sum", []string{"sh", "-c", `find "$@" -type f -print0 | xargs -0 md5sum`, "sh", "$DIR"}},
		{"recollindex", []string{"recollindex", "-c", "$OUT"}},
	}
}

func (b *gatherBench) localPeers(ctx context.Context, dirs []string, work string, std std) (rows [][]string, err error) {
	list, err := b.chosen(localPeerPrograms(), std)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	files, out := 0, filepath.Join(work, "peer")
	for _, d := range dirs {
		err := filepath.WalkDir(d, func(_ string, e iofs.DirEntry, err error) error {
			if err == nil && e.Type().IsRegular() {
				files++
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	for _, p := range list {
		if p.name == "recollindex" {
			p.argv, err = recollArgs(dirs, work)
			if err != nil {
				return rows, err
			}
		}
		r, err := p.withDirs(dirs).run(ctx, out, strings.NewReplacer("$OUT", out))
		if err != nil {
			return rows, err
		}
		rows = append(rows, append(r.row(files), "", ""))
	}
	return rows, nil
}

// withDirs puts the folders where $DIR stands.
func (p gatherPeer) withDirs(dirs []string) gatherPeer {
	var argv []string
	for _, a := range p.argv {
		if a == "$DIR" {
			argv = append(argv, dirs...)
		} else {
			argv = append(argv, a)
		}
	}
	p.argv = argv
	return p
}

// recollArgs writes recoll's settings, which name the folders.
func recollArgs(dirs []string, work string) ([]string, error) {
	conf := filepath.Join(work, "recoll")
	if err := errors.Join(os.RemoveAll(conf), os.MkdirAll(conf, 0o755)); err != nil {
		return nil, err
	}
	text := "topdirs = " + strings.Join(dirs, " ") + "\nidxflushmb = 50\nthrQSizes = -1 -1 -1\n"
	return []string{"recollindex", "-c", conf}, os.WriteFile(filepath.Join(conf, "recoll.conf"), []byte(text), 0o644)
}
