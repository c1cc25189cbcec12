// A process that indexes a folder: `indexer.fixture.ts INDEX FOLDER`. Prints a line per file, then the report.
import { openKnowledge } from './knowledge.ts'

const [path, folder] = process.argv.slice(2) as [string, string]
const knowledge = openKnowledge({ path })
const report = await knowledge.add([folder], {
  onProgress: (it) => {
    if (it.phase === 'reading') process.stdout.write(`${it.done}\n`)
  },
})
process.stdout.write(`${JSON.stringify(report)}\n`)
await knowledge.close()
