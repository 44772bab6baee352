module github.com/coredns/coredns/man/generate

go 1.25

require (
	github.com/cpuguy83/go-md2man/v2 v2.0.7
	github.com/yuin/goldmark v1.7.13
)

require github.com/russross/blackfriday/v2 v2.1.0 // indirect
