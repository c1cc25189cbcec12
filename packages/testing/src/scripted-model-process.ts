// The other side of `spawnScriptedModel`.
import { type ScriptedModelOptions, scriptedModel } from './scripted-model.ts'

process.once('message', async (options: ScriptedModelOptions) => {
  const server = await scriptedModel(options)
  process.send!(server.url)
})
process.once('disconnect', () => process.exit())
