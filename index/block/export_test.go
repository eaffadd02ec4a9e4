package block

import "harvest/index"

// OpenCoarse opens an index of grain tiny in which words of more than one
// document, and of more than a fourth of them, have one of a few blocks.
func OpenCoarse(dir string, set index.Settings) (index.Engine, error) {
	e, err := open(dir, set, Tiny, coarseness{exact: 1, share: 4, blocks: 5})
	if err != nil {
		return nil, err
	}
	return e, nil
}
