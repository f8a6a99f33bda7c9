/** The guest daemon's services as protobuf-es describes them; `spec/envd` is the source. */
export * as filesystem from './gen/envd/filesystem/filesystem_pb.ts';
export * as process from './gen/envd/process/process_pb.ts';
