package essence

import (
	"os"
	"testing"

	"harvest/gather/essence/jail"
)

func TestMain(m *testing.M) {
	jail.Main(Inside()...)
	os.Exit(m.Run())
}
