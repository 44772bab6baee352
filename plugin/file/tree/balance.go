package tree

// A left-leaning red-black tree: a red node and its black parent stand for one node of a 2-3 tree, red nodes are left
// children only, and each way down passes as many black nodes. So no way is longer than twice the shortest one.

// Color is the color of a node.
type Color bool

// Colors of nodes.
const (
	Red   Color = false
	Black Color = true
)

// Node is a node of a Tree. The nil Node is a tree without names, and black.
type Node struct {
	Elem        *Elem
	Left, Right *Node
	Color       Color
}

func (n *Node) red() bool { return n != nil && n.Color == Red }

// insert is the tree with a name that is not there yet.
func (n *Node) insert(e *Elem) *Node {
	if n == nil {
		return &Node{Elem: e}
	}
	if compare(e.key, n.Elem.key) < 0 {
		n.Left = n.Left.insert(e)
	} else {
		n.Right = n.Right.insert(e)
	}
	return n.lean()
}

// lean makes right what an insertion or a removal below left behind: red right children, two red ones in
// a row, and 2-3 nodes that grew too large.
func (n *Node) lean() *Node {
	if n.Right.red() && !n.Left.red() {
		n = n.rotateLeft()
	}
	if n.Left.red() && n.Left.Left.red() {
		n = n.rotateRight()
	}
	if n.Left.red() && n.Right.red() {
		n.flip()
	}
	return n
}

func (n *Node) rotateLeft() *Node {
	up := n.Right
	n.Right, up.Left = up.Left, n
	up.Color, n.Color = n.Color, Red
	return up
}

func (n *Node) rotateRight() *Node {
	up := n.Left
	n.Left, up.Right = up.Right, n
	up.Color, n.Color = n.Color, Red
	return up
}

// flip moves redness between a node and both its children.
func (n *Node) flip() {
	n.Color = !n.Color
	n.Left.Color = !n.Left.Color
	n.Right.Color = !n.Right.Color
}

func (n *Node) first() *Node {
	for n.Left != nil {
		n = n.Left
	}
	return n
}

func (n *Node) last() *Node {
	for n.Right != nil {
		n = n.Right
	}
	return n
}

// remove takes a name away that is there.
func (t *Tree) remove(key []byte) {
	if !t.Root.Left.red() && !t.Root.Right.red() {
		t.Root.Color = Red
	}
	t.Root = t.Root.remove(key)
	if t.Root != nil {
		t.Root.Color = Black
	}
	t.Count--
}

// remove is the tree without a name that is in it. n or its left child is red, so that what is
// removed at the end is a red leaf, which no way down counts.
func (n *Node) remove(key []byte) *Node {
	if compare(key, n.Elem.key) < 0 {
		n = n.redLeft()
		n.Left = n.Left.remove(key)
		return n.lean()
	}
	if n.Left.red() {
		n = n.rotateRight()
	}
	if n.Right == nil { // and so no left child: n is the leaf
		return nil
	}
	n = n.redRight()
	if compare(key, n.Elem.key) == 0 {
		n.Elem = n.Right.first().Elem // takes the place
		n.Right = n.Right.remove(n.Elem.key)
	} else {
		n.Right = n.Right.remove(key)
	}
	return n.lean()
}

// redLeft makes the left child or its left child red, borrowing from the right one.
func (n *Node) redLeft() *Node {
	if n.Left.red() || n.Left.Left.red() {
		return n
	}
	n.flip()
	if n.Right.Left.red() {
		n.Right = n.Right.rotateRight()
		n = n.rotateLeft()
		n.flip()
	}
	return n
}

// redRight makes the right child or its left child red, borrowing from the left one.
func (n *Node) redRight() *Node {
	if n.Right.red() || n.Right.Left.red() {
		return n
	}
	n.flip()
	if n.Left.Left.red() {
		n = n.rotateRight()
		n.flip()
	}
	return n
}

// appendAll appends the Elems of a tree in order.
func (n *Node) appendAll(all []*Elem) []*Elem {
	if n == nil {
		return all
	}
	all = append(n.Left.appendAll(all), n.Elem)
	return n.Right.appendAll(all)
}
