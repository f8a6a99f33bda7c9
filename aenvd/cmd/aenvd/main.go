// aenvd is the daemon inside a sandbox: PID 1 of the guest, and the server of the envd protocol.
package main

import (
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"strconv"

	"aenvd/internal/boot"
	"aenvd/internal/server"
)

const version = "0.6.13"

func main() {
	port := flag.Int("port", 49983, "TCP port to serve on; 0 lets the system choose and prints it")
	host := flag.String("host", "", "address to serve on; all when empty")
	noInit := flag.Bool("no-init", false, "run as a plain process, also as PID 1 (of a container)")
	showVersion := flag.Bool("version", false, "print the version and exit")
	flag.Parse()
	if *showVersion {
		fmt.Println(version)
		return
	}
	log.SetFlags(log.LstdFlags | log.Lmicroseconds | log.LUTC)
	log.SetPrefix("aenvd: ")
	asInit := os.Getpid() == 1 && !*noInit
	options := server.Options{Version: version, OwnsMachine: asInit}
	if asInit {
		config, err := boot.Run()
		if err != nil {
			boot.Fail(err)
		}
		options.Address = config.Address.Addr()
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(*host, strconv.Itoa(*port)))
	if err != nil {
		fail(asInit, err)
	}
	log.Printf("%s listening on %s", version, listener.Addr())
	fail(asInit, server.New(options).Serve(listener))
}

// fail ends the program, and with it the machine where it is PID 1.
func fail(asInit bool, err error) {
	if asInit {
		boot.Fail(err)
	}
	log.Fatal(err)
}
