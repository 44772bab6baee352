package secondary

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
)

// A stored zone of which a part is lost is a master file like any other. It has its primary's serial, so that nothing
// would be fetched. So a comment at its begin tells that the last line has a sum of all before it, and one that does not
// match is of no use. What has neither, as an earlier version stored it, or somebody has put it there, is taken as it is.

const (
	sumNote  = "; the last line is a sum of all before it"
	sumBegin = "; sum "
	sumLine  = len(sumBegin) + 8 + 1 // octets of the last line
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// summed writes what write writes, and the sum of it.
func summed(to io.Writer, write func(io.Writer) error) error {
	sum := crc32.New(castagnoli)
	if err := write(io.MultiWriter(to, sum)); err != nil {
		return err
	}
	_, err := io.WriteString(to, lineOf(sum.Sum32()))
	return err
}

var errSum = errors.New("it is damaged: it does not match the sum in its last line")

// checkSum reads a file, and finds whether it is as it was written. noted says that it is to have a sum.
func checkSum(path string, noted bool) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	last := make([]byte, min(info.Size(), int64(1+sumLine)))
	if _, err := f.ReadAt(last, info.Size()-int64(len(last))); err != nil {
		return err
	}
	if !noted && !bytes.HasPrefix(last, []byte("\n"+sumBegin)) { // a record's text may end like one
		return nil
	}
	last = last[max(len(last)-sumLine, 0):]
	from := info.Size() - int64(len(last))
	sum := crc32.New(castagnoli)
	if _, err := io.Copy(sum, io.NewSectionReader(f, 0, from)); err != nil {
		return err
	}
	if string(last) != lineOf(sum.Sum32()) {
		return errSum
	}
	return nil
}

// lineOf is the last line of a file with a sum.
func lineOf(sum uint32) string { return fmt.Sprintf("%s%08x\n", sumBegin, sum) }
