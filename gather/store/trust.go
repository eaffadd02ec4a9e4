package store

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.etcd.io/bbolt"
)

// The index is written without waiting for the disk: all it holds is in the
// segments, and each of its transactions dirties so many pages that waiting costs
// more than all else (1M objects: 8 GB of pages; unsynced, the kernel writes most
// of them once). So after a power cut it may be torn, in ways that bbolt cannot
// see. The file index.state says when it can be believed:
//
//	clean         all of it was synced before this line was
//	BOOT MOUNT    it was being written, on this boot of the kernel and this mount
//
// A killed process takes nothing with it that the kernel has, so an index that was
// being written on the boot and the mount that are still there is whole. On any
// other it is made anew.
const stateName = "index.state"

const stateClean = "clean"

// believe reports whether the index can be believed.
func (s *Store) believe() bool {
	b, err := os.ReadFile(filepath.Join(s.dir, stateName))
	if err != nil {
		return false
	}
	state, whole := strings.CutSuffix(string(b), "\n")
	here := system(s.dir)
	s.settled = state == stateClean
	return whole && (s.settled || here != "" && state == here)
}

func (s *Store) setState(state string) error {
	path := filepath.Join(s.dir, stateName)
	f, err := os.OpenFile(path+".tmp", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o640)
	if err != nil {
		return err
	}
	_, err = f.WriteString(state + "\n")
	if err == nil && !s.opt.NoSync {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(path+".tmp", path)
	}
	if err == nil && !s.opt.NoSync {
		err = syncDir(s.dir)
	}
	return err
}

// updateIndex runs a transaction that writes the index. The caller holds indexMu
// or is Open.
func (s *Store) updateIndex(do func(b buckets, tx *bbolt.Tx) error) error {
	if s.settled {
		if err := s.setState(system(s.dir)); err != nil {
			return fmt.Errorf("index: %w", err)
		}
		s.settled = false
	}
	stop := s.keepForgetting()
	defer stop()
	err := s.db.Update(func(tx *bbolt.Tx) error {
		b, err := makeBuckets(tx)
		if err != nil {
			return err
		}
		return do(b, tx)
	})
	if err != nil {
		return fmt.Errorf("index: %w", err)
	}
	return nil
}

// keepForgetting forgets pages until it is stopped, for a commit looks at every
// page that it replaces.
func (s *Store) keepForgetting() (stop func()) {
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for tick := time.NewTicker(2 * time.Millisecond); ; {
			select {
			case <-end:
				tick.Stop()
				return
			case <-tick.C:
			}
			s.db.View(func(tx *bbolt.Tx) error { s.forget(tx); return nil })
		}
	}()
	return func() {
		close(end)
		<-ended
	}
}

// settle waits until the index is on disk and says so. The caller holds indexMu,
// or is Open or Close.
func (s *Store) settle() error {
	if s.settled {
		return nil
	}
	if !s.opt.NoSync {
		if err := s.db.Sync(); err != nil {
			return fmt.Errorf("index: %w", err)
		}
	}
	if err := s.setState(stateClean); err != nil {
		return fmt.Errorf("index: %w", err)
	}
	s.settled = true
	return nil
}
