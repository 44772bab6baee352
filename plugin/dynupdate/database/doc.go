// Package database keeps a zone in a file: a version of it, and the changes since.
//
//	Open ──▶ read.go: frames ──▶ Contents: a version, and what led to it ──▶ File
//	File.Commit: changes ──▶ a frame behind the others, synced
//	File.Write ──▶ Anew: another file beside, with a version and no changes ──Take──▶ the file itself
//
// frames.go has the form of files, disk.go what is asked of a disk, and lock.go how one process has a file for itself.
// What a change is, and who may make one, the package does not know. Start at Open and File.Commit.
package database
