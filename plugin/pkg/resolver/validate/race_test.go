//go:build race

package validate

// slower is how many times as long a test with the race detector may take.
const slower = 20
