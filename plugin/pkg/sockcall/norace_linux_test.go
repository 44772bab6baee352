//go:build !race

package sockcall

const raceEnabled = false
