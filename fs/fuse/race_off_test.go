//go:build !race

package fuse

const raceOn = false
