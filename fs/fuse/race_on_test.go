//go:build race

package fuse

const raceOn = true
