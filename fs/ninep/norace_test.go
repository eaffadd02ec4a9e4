//go:build !race

package ninep

const raceOn = false
