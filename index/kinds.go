package index

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"
)

// A Kind is what an attribute's values are, each different one counted once.
type Kind struct {
	Attribute
	Numbers int // that are numbers
	Whole   int // of those, that are whole
	Dates   int // that are dates, or may be times in seconds since 1970

	// Low and High are the least and the greatest number; First and Last the
	// same of dates.
	Low, High   float64
	First, Last time.Time
}

// A Kinder is an Engine that tells what values are.
type Kinder interface {
	Kinds(ctx context.Context) ([]Kind, error)
}

var _ Kinder = (*engine)(nil)

// Kinds goes through the values of all attributes.
func (e *engine) Kinds(ctx context.Context) ([]Kind, error) {
	all, err := e.Attributes(ctx)
	if err != nil {
		return nil, err
	}
	v, err := e.view()
	if err != nil {
		return nil, err
	}
	defer runtime.KeepAlive(v)
	kinds := make([]Kind, len(all))
	for i, a := range all {
		kinds[i].Attribute = a
		if err := v.each(ctx, a.Name, nil, func(key []byte, _ int) bool {
			kinds[i].add(key)
			return key[0] < KeyText
		}); err != nil {
			if ctx.Err() == nil {
				err = fmt.Errorf("index: %w", err)
			}
			return nil, err
		}
	}
	return slices.Clip(kinds), nil
}

// add takes one key; keys come in order.
func (k *Kind) add(key []byte) {
	switch {
	case key[0] == KeyNumber && len(key) == 9:
		n := keyNumber(key)
		if k.Numbers++; k.Numbers == 1 {
			k.Low = n
		}
		k.High = n
		if n == math.Trunc(n) {
			k.Whole++
		}
	case key[0] == KeyDate && len(key) == 13:
		t := time.Unix(int64(binary.BigEndian.Uint64(key[1:])^1<<63), int64(binary.BigEndian.Uint32(key[9:]))).UTC()
		if k.Dates++; k.Dates == 1 {
			k.First = t
		}
		k.Last = t
	}
}
