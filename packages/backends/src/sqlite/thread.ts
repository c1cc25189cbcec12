// The writer thread: it alone writes to the file, so that the main thread never waits for the disk.
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import type { Answer, FromThread, ToThread, Write } from './protocol.ts'
import { connect } from './schema.ts'
import { openStore } from './store.ts'

const port = parentPort!
const { path } = workerData as { path: string }
const db = connect(path)
const store = openStore(db)
const reply = (message: FromThread) => port.postMessage(message)

port.on('message', (first: ToThread) => {
  // All that waits goes into one transaction: while the disk was busy with the last, more has come.
  let writes: readonly Write[] = []
  for (let message: ToThread | undefined = first; message !== undefined; message = next()) {
    if (message === 'close') {
      answer(writes)
      close()
      return
    }
    if (!isWrites(message)) continue
    writes = writes.length === 0 ? message : writes.concat(message)
  }
  answer(writes)
})

const isWrites = (message: ToThread): message is readonly Write[] => Array.isArray(message)

function next(): ToThread | undefined {
  return receiveMessageOnPort(port)?.message
}

function answer(writes: readonly Write[]): void {
  if (writes.length === 0) return
  const answers: Answer[] = store.apply(writes)
  reply(answers)
}

function close(): void {
  db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  db.close()
  port.close()
}
