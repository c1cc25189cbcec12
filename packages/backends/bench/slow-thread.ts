// The writer thread on a slow disk.
import './slow-commit.ts'
import '../src/sqlite/writer/thread.ts'
