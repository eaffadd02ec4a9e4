package index

import (
	"context"
	"iter"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"harvest/index/posting"
)

const (
	defaultMemory = 128 << 20
	maxMemory     = 3 << 30 // an inverter's chains are found by 32 bits
	maxBatch      = 256 << 10
)

// A feeder turns a sequence of documents into segments.
type feeder struct {
	set     Settings
	workers int
	memory  int64
	batch   int // bytes of text handed to a worker
	create  func() (path string, number uint64)

	names   []string          // of attributes, by number
	keyed   []bool            // whether their values are kept
	numbers map[string]uint32 // by the name as it came, or as it is

	ids   []ID // of the documents not yet in a segment
	hands []*hand
	work  chan *batch
	free  chan *batch
	given sync.WaitGroup // batches at hand
	hired sync.WaitGroup // hands
	made  []*segment
}

// A hand inverts documents in a goroutine of its own.
type hand struct {
	x    *inverter
	size atomic.Int64
}

// A batch is some documents.
type batch struct {
	first uint32 // number of the first
	text  []byte
	docs  []int // where in fields those of each document end
	list  []batchField
	keyed []bool // by number of field
}

type batchField struct {
	number uint32
	end    int // of its text
}

func newFeeder(set Settings, create func() (string, uint64)) *feeder {
	f := &feeder{set: set, workers: set.Workers, memory: set.Memory, create: create, numbers: make(map[string]uint32)}
	if f.workers <= 0 {
		f.workers = runtime.GOMAXPROCS(0)
	}
	if f.memory <= 0 {
		f.memory = defaultMemory
	}
	f.memory = min(f.memory, maxMemory)
	f.batch = int(min(maxBatch, f.memory/int64(8*f.workers))) // there are two for each worker
	return f
}

// feed makes segments of all documents. They are synced; after an error there
// may be some as well.
func (f *feeder) feed(ctx context.Context, puts iter.Seq2[*Doc, error]) error {
	if puts == nil {
		return nil
	}
	defer f.dismiss()
	b := new(batch)
	for d, err := range puts {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if f.workers == 1 {
			err = f.invert(ctx, d)
		} else if f.take(b, d); len(b.text) >= f.batch || len(f.names) > maxField/2 {
			b, err = f.give(ctx, b)
		}
		if err != nil {
			return err
		}
	}
	return f.last(ctx, b)
}

// inverter is a new one; of what a heap takes three quarters are chains.
func (f *feeder) inverter() *inverter {
	return newInverter(&f.set, int(f.memory/int64(f.workers)*3/4))
}

// number is that of an attribute.
func (f *feeder) number(raw string) uint32 {
	if n, ok := f.numbers[raw]; ok {
		return n
	}
	name := Attr(raw)
	n, ok := f.numbers[name]
	if !ok {
		n = uint32(len(f.names))
		f.names = append(f.names, name)
		f.keyed = append(f.keyed, f.set.Keys == nil || f.set.Keys(name))
		f.numbers[name] = n
	}
	if len(f.numbers) < 4*len(f.names)+100 { // whatever ways there are to write it
		f.numbers[raw] = n
	}
	return n
}

// invert is all there is to do with one worker.
func (f *feeder) invert(ctx context.Context, d *Doc) error {
	if len(f.hands) == 0 {
		f.hands = []*hand{{x: f.inverter()}}
	}
	x := f.hands[0].x
	x.begin(uint32(len(f.ids)))
	f.ids = append(f.ids, d.ID)
	for i := range d.Fields {
		n := f.number(d.Fields[i].Name)
		x.add(n, f.keyed[n], d.Fields[i].Text)
	}
	x.end()
	f.hands[0].size.Store(x.size())
	if f.full() {
		return f.flush(ctx)
	}
	return nil
}

// full tells whether it is time to make a segment.
func (f *feeder) full() bool {
	size := int64(len(f.ids)) * 32
	for _, h := range f.hands {
		size += h.size.Load()
	}
	return size >= f.memory || len(f.names) > maxField/2
}

// take copies a document into the batch.
func (f *feeder) take(b *batch, d *Doc) {
	if len(b.docs) == 0 {
		b.first = uint32(len(f.ids))
	}
	f.ids = append(f.ids, d.ID)
	for i := range d.Fields {
		b.text = append(b.text, d.Fields[i].Text...)
		b.list = append(b.list, batchField{f.number(d.Fields[i].Name), len(b.text)})
	}
	b.docs = append(b.docs, len(b.list))
}

// give hands a batch to a worker and returns an empty one.
func (f *feeder) give(ctx context.Context, b *batch) (*batch, error) {
	if len(f.hands) == 0 {
		f.hire()
	}
	f.given.Add(1)
	b.keyed = f.keyed
	f.work <- b
	if f.full() {
		if err := f.flush(ctx); err != nil {
			return nil, err
		}
	}
	return <-f.free, nil
}

// hire starts the workers; dismiss waits for them.
func (f *feeder) hire() {
	f.work = make(chan *batch)
	f.free = make(chan *batch, 2*f.workers)
	for range 2*f.workers - 1 {
		f.free <- new(batch)
	}
	for range f.workers {
		h := &hand{x: f.inverter()}
		f.hands = append(f.hands, h)
		f.hired.Go(func() {
			for b := range f.work {
				b.invert(h.x)
				h.size.Store(h.x.size())
				b.reset()
				f.given.Done()
				f.free <- b
			}
		})
	}
}

func (f *feeder) dismiss() {
	if f.work != nil {
		close(f.work)
	}
	f.hired.Wait()
	for _, h := range f.hands {
		h.x.words.release()
	}
	f.hands = nil
}

// last makes a segment of what is left, b included.
func (f *feeder) last(ctx context.Context, b *batch) error {
	if len(b.docs) > 0 {
		if len(f.hands) == 0 { // too little to be shared out
			f.hands = []*hand{{x: f.inverter()}}
		} else {
			f.given.Wait()
		}
		b.keyed = f.keyed
		b.invert(f.hands[0].x)
	}
	return f.flush(ctx)
}

// flush makes a segment of the documents so far.
func (f *feeder) flush(ctx context.Context) error {
	f.given.Wait()
	if len(f.ids) == 0 {
		return nil
	}
	b := &build{names: f.names, ids: f.ids, kind: posting.Positions}
	if f.set.NoPositions {
		b.kind = posting.Freqs
	}
	for _, h := range f.hands {
		b.in = append(b.in, h.x)
	}
	path, number := f.create()
	if err := b.write(ctx, path, f.workers); err != nil {
		return err
	}
	s, err := openSegment(path, number)
	if err != nil {
		return err
	}
	f.made = append(f.made, s)
	f.ids = f.ids[:0]
	for _, h := range f.hands {
		h.x.reset()
		h.size.Store(0)
	}
	if len(f.names) > maxField/2 {
		f.names, f.keyed, f.numbers = nil, nil, make(map[string]uint32)
	}
	return nil
}

func (b *batch) invert(x *inverter) {
	field, from := 0, 0
	for i, end := range b.docs {
		x.begin(b.first + uint32(i))
		for ; field < end; field++ {
			f := b.list[field]
			x.add(f.number, b.keyed[f.number], asString(b.text[from:f.end]))
			from = f.end
		}
		x.end()
	}
}

func (b *batch) reset() { b.text, b.docs, b.list = b.text[:0], b.docs[:0], b.list[:0] }

// asString is b as a string, as long as b is not written to.
func asString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
