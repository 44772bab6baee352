//go:build !race

package validate

// slower is how many times as long this test may take.
const slower = 1
