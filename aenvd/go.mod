module aenvd

go 1.23.0

require (
	connectrpc.com/connect v1.18.1
	github.com/fsnotify/fsnotify v1.10.1
	golang.org/x/net v0.43.0
	golang.org/x/sys v0.35.0
	google.golang.org/protobuf v1.36.12
)

require golang.org/x/text v0.28.0 // indirect
