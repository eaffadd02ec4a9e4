//go:build race

package jail

// raced: the race detector's shadow of memory is data.
const raced = true
