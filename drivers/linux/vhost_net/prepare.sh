#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# usage: prepare.sh [--source TARBALL|TREE] [--upto N] SERIES OUTDIR (see ../prepare.sh)
exec "$(dirname "$0")/../prepare.sh" vhost_net "$@"
