// The files and the log of a task.
import type { Engine } from '@oxbow/core'
import { z } from 'zod'
import { HttpError } from '../http/errors.ts'
import { type Route, route } from '../http/route.ts'
import { errorAnswer } from '../http/schemas.ts'
import { callerOf } from '../principal.ts'
import { existingProtocolTask, taskPath } from './task.ts'

const notFound = { description: 'The task or file does not exist.', schema: errorAnswer }

/** Paths contain slashes, which a URL segment cannot. */
const idOf = (path: string): string => Buffer.from(path).toString('base64url')
const pathOf = (id: string): string => Buffer.from(id, 'base64url').toString()

export function fileRoutes(engine: Engine): Route[] {
  const { files } = engine.backend
  const list = route({
    method: 'get',
    path: '/tasks/{taskId}/artifacts',
    id: 'listProtocolArtifacts',
    summary: 'Agent Protocol: the files of a task.',
    params: taskPath,
    answers: {
      200: {
        description: 'The files.',
        schema: z.object({
          artifacts: z.array(
            z.object({
              artifact_id: z.string(),
              file_name: z.string(),
              relative_path: z.string(),
              agent_created: z.boolean(),
              bytes: z.number(),
            }),
          ),
        }),
      },
      404: notFound,
    },
    async handle({ params: { taskId } }, c) {
      const { session } = await existingProtocolTask(engine, callerOf(c).owner, taskId)
      const found = await files.list(session.key, '')
      const artifacts = found.map(({ path, bytes }) => {
        const cut = path.lastIndexOf('/') + 1
        const relative = path.slice(0, cut)
        return {
          artifact_id: idOf(path),
          file_name: path.slice(cut),
          relative_path: relative,
          agent_created: true,
          bytes,
        }
      })
      return c.json({ artifacts })
    },
  })
  const one = route({
    method: 'get',
    path: '/tasks/{taskId}/artifacts/{artifactId}',
    id: 'getProtocolArtifact',
    summary: 'Agent Protocol: the content of a file.',
    params: taskPath.extend({ artifactId: z.string().max(2_000) }),
    answers: { 200: { description: 'The content.', contentType: 'application/octet-stream' }, 404: notFound },
    async handle({ params: { taskId, artifactId } }, c) {
      const { session } = await existingProtocolTask(engine, callerOf(c).owner, taskId)
      const path = pathOf(artifactId)
      // No file has a name with a NUL character.
      const file = path.includes('\0') ? undefined : await files.get(session.key, path)
      if (file === undefined) throw new HttpError(404, 'unknown_artifact', 'The task has no file with this id.')
      const name = encodeURIComponent(path.slice(path.lastIndexOf('/') + 1))
      return c.body(Buffer.from(file.data), 200, {
        'content-type': 'application/octet-stream',
        'content-disposition': `attachment; filename*=UTF-8''${name}`,
      })
    },
  })
  const log = route({
    method: 'get',
    path: '/tasks/{taskId}/logs',
    id: 'getProtocolLog',
    summary: 'Agent Protocol: all stored events of a task, one JSON object per line.',
    params: taskPath,
    answers: { 200: { description: 'The log.', contentType: 'application/x-ndjson' }, 404: notFound },
    async handle({ params: { taskId } }, c) {
      const { events } = await existingProtocolTask(engine, callerOf(c).owner, taskId)
      return c.body(`${events.map((it) => JSON.stringify(it)).join('\n')}\n`, 200, {
        'content-type': 'application/x-ndjson; charset=utf-8',
      })
    },
  })
  return [list, one, log]
}
