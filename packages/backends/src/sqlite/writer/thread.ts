// The writer thread: the only writer of the file, so that the main thread never waits for the disk.
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import { openMark } from '../file/mark.ts'
import { placeOf } from '../file/place.ts'
import { connect } from '../file/schema.ts'
import type { FromWriter, ToWriter, Write, WriteFailure } from './protocol.ts'
import { shrinkWhenIdle } from './shrink.ts'
import { openWriterStore } from './store.ts'
import { openWatches } from './watches.ts'

const port = parentPort!
const { path, place } = workerData as { path: string; place: string }
const db = connect(path)
const mark = openMark(path)
const store = openWriterStore(db, mark.write)
const wrote = shrinkWhenIdle(db, path)
const displaced: WriteFailure = { errcode: undefined, message: 'displaced', displaced: true }
const reply = (message: FromWriter) => port.postMessage(message)
const watches = openWatches(db, store, (wake) => reply({ wake }))

port.on('message', (first: ToWriter) => {
  // All waiting writes go into one transaction: more arrive while the disk is busy with the last one.
  const writes: Write[] = []
  let close = false
  for (
    let message: ToWriter | undefined = first;
    message !== undefined;
    message = receiveMessageOnPort(port)?.message
  ) {
    if ('writes' in message) for (const write of message.writes) writes.push(write)
    else if ('watch' in message) watches.add(message.watch, message.key, message.head)
    else if ('unwatch' in message) watches.remove(message.unwatch)
    else close = true
  }
  if (writes.length > 0) {
    const inPlace = placeOf(path) === place
    reply({ answers: inPlace ? store.apply(writes) : writes.map(() => displaced) })
    wrote()
  }
  if (!close) return
  // The last connection to a file empties the log into it.
  db.close()
  mark.close()
  process.exit()
})
