package response

import "fmt"

// Class groups the types by what they mean to the one who asked.
type Class int

// The classes, in the order of their strings.
const (
	// All stands for every class; no message is of it.
	All Class = iota
	// Success is NoError and Delegation.
	Success
	// Denial is NameError and NoData.
	Denial
	// Error is every other type.
	Error
)

var classNames = [...]string{
	All:     "all",
	Success: "success",
	Denial:  "denial",
	Error:   "error",
}

// String returns the name of c, for instance "denial".
func (c Class) String() string {
	if c < 0 || int(c) >= len(classNames) {
		return fmt.Sprintf("Class(%d)", int(c))
	}
	return classNames[c]
}

// ClassFromString returns the class that String names s. For any other text it returns All and an error.
func ClassFromString(s string) (Class, error) {
	for c, name := range classNames {
		if s == name {
			return Class(c), nil
		}
	}
	return All, fmt.Errorf("invalid Class: %s", s)
}

// Classify returns the class to which t belongs.
func Classify(t Type) Class {
	switch t {
	case NoError, Delegation:
		return Success
	case NameError, NoData:
		return Denial
	default:
		return Error
	}
}
