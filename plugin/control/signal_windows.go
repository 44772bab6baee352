package control

import "os"

// endSignal has the process end in good order.
var endSignal = os.Interrupt
