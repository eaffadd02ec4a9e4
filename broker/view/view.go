// Package view is Nebula's part of a Broker: views, which are queries that stand
// and whose members follow the collection.
//
// Standing tells which of many queries a document matches without asking each.
// Views keeps on disk who is in which view: it is handed what changes in the
// collection, and from a query that is new all that match. A view inside of
// another has no members that that has not. What people put into a view or take
// out of it by hand stays so, whatever its query says.
//
// The package knows documents as the index does, by fields; it neither stores
// nor searches them.
package view

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"go.etcd.io/bbolt"

	"harvest/index"
	"harvest/index/query"
)

// A View is what is known of a view. Its values do not change once it is given.
type View struct {
	ID      uint32
	Name    string // "smith/recent" is in "smith"
	Owner   string
	Query   query.Node // nil: none yet, and so without members but those put in by hand
	Filled  bool       // false: not all that match are in it yet
	Members int
	Seq     uint64 // of its last change
	parent  uint32 // 0: none
}

// An Op is what happened to a document in a view.
type Op byte

// What can happen.
const (
	Joined  Op = '+'
	Changed Op = '=' // and is still in it
	Left    Op = '-'
)

// String is the word for it.
func (o Op) String() string {
	switch o {
	case Joined:
		return "joined"
	case Changed:
		return "changed"
	case Left:
		return "left"
	}
	return fmt.Sprintf("Op(%d)", byte(o))
}

// An Event is a change of a view.
type Event struct {
	View string
	Op   Op
	ID   index.ID
}

// A Change is one of the collection. Fields are those of a document that is new
// or not what it was; nil says that it is gone.
type Change struct {
	ID     index.ID
	Fields []index.Field
}

// Views are those of a collection, in a file. Its methods may be called
// concurrently; those that change something follow one another.
type Views struct {
	db       *bbolt.DB
	standing atomic.Pointer[Standing]
	epoch    uint32

	changing sync.Mutex // held by the one that changes something

	mu   sync.RWMutex // guards what follows, and nothing that waits
	all  map[uint32]*View
	name map[string]*View
}

// Get gives a view by its name.
func (v *Views) Get(name string) (View, error) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	w := v.name[name]
	if w == nil {
		return View{}, fmt.Errorf("view %s: %w", name, iofs.ErrNotExist)
	}
	return *w, nil
}

// All gives all views, by name.
func (v *Views) All() (list []View) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	for _, w := range v.name {
		list = append(list, *w)
	}
	slices.SortFunc(list, func(a, b View) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// Inside gives the views that are in a view, or, if name is "", in none, by name.
func (v *Views) Inside(name string) (list []View) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	for n, w := range v.name {
		rest, ok := n, true
		if name != "" {
			rest, ok = strings.CutPrefix(n, name+"/")
		}
		if ok && !strings.Contains(rest, "/") {
			list = append(list, *w)
		}
	}
	slices.SortFunc(list, func(a, b View) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// Unfilled are the views whose queries were never answered to the end, those
// that others are inside of first.
func (v *Views) Unfilled() (list []View) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	for _, w := range v.all {
		if !w.Filled {
			list = append(list, *w)
		}
	}
	sortByDepth(list)
	return list
}

func sortByDepth(list []View) {
	slices.SortFunc(list, func(a, b View) int {
		if c := strings.Count(a.Name, "/") - strings.Count(b.Name, "/"); c != 0 {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	})
}

// Len is how many views there are, and how many of their queries are tried on
// every document.
func (v *Views) Len() (all, bare int) {
	v.mu.RLock()
	all = len(v.all)
	v.mu.RUnlock()
	_, bare = v.standing.Load().Len()
	return all, bare
}

// Make makes a view, without a query. Its parent, if its name has one, exists.
func (v *Views) Make(name, owner string) (View, error) {
	v.changing.Lock()
	defer v.changing.Unlock()
	w := View{Name: name, Owner: owner, Filled: true}
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		parent, err := v.Get(name[:i])
		if err != nil {
			return View{}, err
		}
		w.parent = parent.ID
	}
	if _, err := v.Get(name); err == nil {
		return View{}, fmt.Errorf("view %s: %w", name, iofs.ErrExist)
	}
	err := v.db.Update(func(tx *bbolt.Tx) error {
		n, err := tx.Bucket(bucketViews).NextSequence()
		if err != nil {
			return err
		}
		w.ID = uint32(n)
		return putView(tx, &w)
	})
	if err != nil {
		return View{}, fmt.Errorf("view %s: %w", name, err)
	}
	v.enter(&w)
	return w, nil
}

func (v *Views) enter(w *View) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.all[w.ID], v.name[w.Name] = w, w
}

// Remove removes a view that no other is inside of.
func (v *Views) Remove(name string) error {
	v.changing.Lock()
	defer v.changing.Unlock()
	w, err := v.Get(name)
	if err != nil {
		return err
	}
	if len(v.Inside(name)) > 0 {
		return fmt.Errorf("view %s: %w", name, syscall.ENOTEMPTY)
	}
	v.standing.Load().Drop(w.ID)
	v.mu.Lock()
	delete(v.all, w.ID)
	delete(v.name, name)
	v.mu.Unlock()
	// What a crash leaves of its members belongs to no view, and Open drops it.
	err = v.db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(bucketViews).Delete(viewKey(w.ID)) })
	if err == nil {
		err = v.sweep(w.ID)
	}
	if err != nil {
		return fmt.Errorf("view %s: %w", name, err)
	}
	return nil
}

// change makes views others, on disk with what also does, and here.
func (v *Views) change(also func(tx *bbolt.Tx) error, list ...View) error {
	err := v.db.Update(func(tx *bbolt.Tx) error {
		if err := also(tx); err != nil {
			return err
		}
		for i := range list {
			if err := putView(tx, &list[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("views: %w", err)
	}
	for i := range list {
		w := list[i]
		v.enter(&w)
	}
	return nil
}

func nothing(*bbolt.Tx) error { return nil }

// SetQuery gives a view another query. It, and those inside of it, are not filled
// then: Fill does that, in the order given. Meanwhile their members are what they
// were, but for what changes. An error that wraps
// iofs.ErrInvalid changes nothing.
func (v *Views) SetQuery(name string, q query.Node) (fill []View, err error) {
	v.changing.Lock()
	defer v.changing.Unlock()
	w, err := v.Get(name)
	if err != nil {
		return nil, err
	}
	if err := v.standing.Load().Put(w.ID, q); err != nil {
		return nil, err
	}
	old := w.Query
	w.Query = q
	fill = append(v.below(name), w)
	for i := range fill {
		fill[i].Filled = false
	}
	if err := v.change(nothing, fill...); err != nil {
		if v.standing.Load().Drop(w.ID); old != nil {
			err = errors.Join(err, v.standing.Load().Put(w.ID, old))
		}
		return nil, err
	}
	sortByDepth(fill)
	return fill, nil
}

// below are the views inside of one, and inside of those.
func (v *Views) below(name string) (list []View) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	for n, w := range v.name {
		if strings.HasPrefix(n, name+"/") {
			list = append(list, *w)
		}
	}
	return list
}

// order gives the views of some numbers, each after the one that it is inside
// of, and those that do not exist not at all.
func (v *Views) order(ids map[uint32]struct{}) []View {
	v.mu.RLock()
	defer v.mu.RUnlock()
	list := make([]View, 0, len(ids))
	for id := range maps.Keys(ids) {
		if w := v.all[id]; w != nil {
			list = append(list, *w)
		}
	}
	sortByDepth(list)
	return list
}
