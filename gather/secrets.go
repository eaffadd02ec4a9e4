package gather

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"sync"

	"harvest/fs/ndb"
	"harvest/gather/fetch"
)

// secrets are the passwords of a Gatherer, in a file of its own that only the
// owner of the process may read: they are in no config, no event, no log and no
// error, and the tree takes them and does not give them back.
type secrets struct {
	path string

	mu   sync.Mutex
	text string
	all  *fetch.Secrets
}

// load reads them, if there are any. A file that others may read is made safe.
func (s *secrets) load(path string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.path = path
	b, err := os.ReadFile(path)
	if errors.Is(err, iofs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = os.Chmod(path, 0o600)
	}
	if err != nil {
		return err
	}
	if s.all, err = fetch.ParseSecrets(string(b)); err != nil {
		return fmt.Errorf("secrets: %w", err)
	}
	s.text = string(b)
	return nil
}

// set checks a text, keeps it, and has the next visit use it. Its error tells
// where the text is bad and nothing of what it says.
func (s *secrets) set(text string) error {
	all, err := fetch.ParseSecrets(text)
	var at *ndb.Error
	if errors.As(err, &at) {
		return fmt.Errorf("line %d, column %d: %s: %w", at.Line, at.Col, at.Msg, iofs.ErrInvalid)
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := writeFileAs(s.path, text, 0o600); err != nil {
		return err
	}
	s.text, s.all = text, all
	return nil
}

func (s *secrets) get() *fetch.Secrets {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all
}

// draft is what a writer who adds lines begins with.
func (s *secrets) draft() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text
}
