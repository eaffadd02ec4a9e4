package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"harvest/gather/essence"
)

// essenceBench is harvest bench essence: summaries of the files of folders, by
// type, beside the programs that read such files.
type essenceBench struct {
	full  bool
	peers bool
	most  int64 // bytes of files of a type that peers are given
}

func benchEssenceCommand() command {
	var b essenceBench
	return command{"bench essence", "[--full] [--peers] DIR…", "time the summaries of files, by type", func(fl *pflag.FlagSet) func(context.Context, []string, std) error {
		fl.BoolVar(&b.full, "full", false, "keep the full text too")
		fl.BoolVar(&b.peers, "peers", false, "measure programs that read such files too, those that are installed")
		fl.Int64Var(&b.most, "peer-bytes", 32<<20, "bytes of files of a type to give a peer")
		return func(ctx context.Context, args []string, std std) error {
			if len(args) == 0 {
				return usagef("name folders of files")
			}
			return b.run(ctx, args, std)
		}
	}}
}

// A typeCost is what the files of a type came to.
type typeCost struct {
	typ     string
	files   []string
	sizes   []int64
	in, out int64
	took    time.Duration // of a processor, programs included
}

func (b *essenceBench) run(ctx context.Context, dirs []string, std std) error {
	costs := make(map[string]*typeCost)
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, d iofs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return nil // one that may not be read is passed over
			}
			return b.one(ctx, path, costs)
		})
		if err != nil {
			return err
		}
	}
	all := make([]*typeCost, 0, len(costs))
	for _, c := range costs {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *typeCost) int { return strings.Compare(a.typ, b.typ) })
	rows := [][]string{{"type", "files", "bytes", "summary", "reduction", "MB/s"}}
	var sum typeCost
	for _, c := range all {
		rows = append(rows, c.row(len(c.files)))
		sum.in, sum.out, sum.took = sum.in+c.in, sum.out+c.out, sum.took+c.took
		sum.files = append(sum.files, c.files...)
	}
	sum.typ = "all"
	table(std.out, append(rows, sum.row(len(sum.files))))
	if b.peers {
		return b.beside(ctx, all, std)
	}
	return nil
}

func (c *typeCost) row(files int) []string {
	return []string{c.typ, strconv.Itoa(files), strconv.FormatInt(c.in, 10), strconv.FormatInt(c.out, 10),
		fmt.Sprintf("%.1f", float64(c.in)/float64(max(c.out, 1))), rate(c.in, c.took)}
}

func rate(n int64, took time.Duration) string {
	return fmt.Sprintf("%.3g", float64(n)/1e6/max(took.Seconds(), 1e-6))
}

// one summarizes a file and adds what it took to its type.
func (b *essenceBench) one(ctx context.Context, path string, costs map[string]*typeCost) error {
	f, err := os.Open(path)
	if err != nil {
		return nil // passed over, as those of a folder
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	before := essenceTime()
	head, err := io.ReadAll(io.LimitReader(f, 1<<20))
	if err != nil {
		return err
	}
	o, _, err := essence.Summarize(ctx, essence.Input{URL: "file://" + path, Name: filepath.Base(path), Head: head, Rest: f, FullText: b.full})
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	took := essenceTime() - before
	typ := o.Text("Type")
	c := costs[typ]
	if c == nil {
		c = &typeCost{typ: typ}
		costs[typ] = c
	}
	c.files, c.sizes = append(c.files, path), append(c.sizes, info.Size())
	c.in, c.out, c.took = c.in+info.Size(), c.out+int64(len(o.Append(nil))), c.took+took
	return nil
}

// essenceTime is what this process has used, and those it has waited for.
func essenceTime() time.Duration {
	var sum time.Duration
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if syscall.Getrusage(who, &u) == nil {
			sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
	}
	return sum
}

// essencePeers are programs that read files of some types, a file at a time.
var essencePeers = []struct {
	types string
	argv  []string // with the file's name after them, or in place of {}
}{
	{"Pdf", []string{"pdftotext", "-q", "{}", "-"}},
	{"Word", []string{"docx2txt", "{}", "-"}},
	{"ODText ODSpreadsheet ODPresentation", []string{"odt2txt"}},
	{"WordOLE", []string{"catdoc", "-w"}},
	{"ExcelOLE", []string{"xls2csv"}},
	{"PowerPointOLE", []string{"catppt"}},
	{"RTF", []string{"unrtf", "--text"}},
	{"PostScript", []string{"gs", "-q", "-dSAFER", "-dBATCH", "-dNOPAUSE", "-sDEVICE=txtwrite", "-sOutputFile=-"}},
	{"Image SVG Audio Video Font Pdf Word Excel PowerPoint EPUB", []string{"exiftool", "-m", "-q"}},
}

// peerFileLimit ends a program that a file has caught.
const peerFileLimit = 20 * time.Second

// beside measures the peers on the files that ours were measured on, ours again
// beside each.
func (b *essenceBench) beside(ctx context.Context, all []*typeCost, std std) error {
	rows := [][]string{{"type", "program", "files", "bytes", "MB/s", "harvest MB/s", "ratio"}}
	for _, p := range essencePeers {
		if _, err := exec.LookPath(p.argv[0]); err != nil {
			fmt.Fprintf(std.err, "harvest: %s is not installed\n", p.argv[0])
			continue
		}
		for _, c := range all {
			if !slices.Contains(strings.Fields(p.types), c.typ) {
				continue
			}
			row, err := b.peer(ctx, c, p.argv)
			if err != nil {
				return err
			}
			rows = append(rows, row)
		}
	}
	fmt.Fprintln(std.out)
	table(std.out, rows)
	return nil
}

func (b *essenceBench) peer(ctx context.Context, c *typeCost, argv []string) ([]string, error) {
	var ours, theirs time.Duration
	var in int64
	n := 0
	again := make(map[string]*typeCost)
	for i, path := range c.files {
		if in > b.most {
			break
		}
		if err := b.one(ctx, path, again); err != nil {
			return nil, err
		}
		took, err := peerTook(ctx, argv, path)
		if err != nil {
			return nil, err
		}
		theirs += took
		in += c.sizes[i]
		n++
	}
	for _, a := range again {
		ours += a.took
	}
	return []string{c.typ, argv[0], strconv.Itoa(n), strconv.FormatInt(in, 10), rate(in, theirs), rate(in, ours),
		fmt.Sprintf("%.2g", theirs.Seconds()/max(ours.Seconds(), 1e-6))}, nil
}

// peerTook is the processor time that a program takes for a file. That it fails
// for one is no matter here.
func peerTook(ctx context.Context, argv []string, path string) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, peerFileLimit)
	defer cancel()
	args := slices.Clone(argv[1:])
	if i := slices.Index(args, "{}"); i >= 0 {
		args[i] = path
	} else {
		args = append(args, path)
	}
	cmd := exec.CommandContext(ctx, argv[0], args...)
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 0, err
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
}
